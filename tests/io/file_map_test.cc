#include "io/file_map.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "support/temp_folder.h"

namespace latte {
namespace {

TEST(FileMap, HoldsTheBytesAcrossMoves) {
  const test::TempFolder folder;
  Result<FileMap> opened = FileMap::open(folder.write("a.bin", "latent"));
  ASSERT_TRUE(opened.ok());
  const std::byte* address = opened->bytes().data();
  FileMap moved = *std::move(opened);
  FileMap assigned = *FileMap::open(folder.write("b.bin", "other"));
  assigned = std::move(moved);
  EXPECT_EQ(assigned.bytes().data(), address);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(address), assigned.bytes().size()), "latent");
  EXPECT_EQ(assigned.path(), folder.file("a.bin"));
}

TEST(FileMap, EmptyFileIsAnEmptySpan) {
  const test::TempFolder folder;
  const Result<FileMap> opened = FileMap::open(folder.write("empty", ""));
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened->bytes().empty());
}

TEST(FileMap, MissingFileNamesPathAndReason) {
  const test::TempFolder folder;
  const Result<FileMap> opened = FileMap::open(folder.file("nowhere.bin"));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(opened.error().message.find("nowhere.bin: cannot open: No such file"), std::string::npos)
      << opened.error().message;
}

TEST(FileMap, FolderIsRefused) {
  const test::TempFolder folder;
  const Result<FileMap> opened = FileMap::open(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("not a regular file"), std::string::npos) << opened.error().message;
}


TEST(FileMap, APipeNobodyWritesIsRefusedAtOnce) {
  const test::TempFolder folder;
  const std::string path = folder.write("file", "") + "_pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Result<FileMap> opened = FileMap::open(path);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("a pipe or device, expected the file itself"), std::string::npos)
      << opened.error().message;
}

}  // namespace
}  // namespace latte
