#include "io/file_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
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

/// What the kernel says of the mapping that an address lies in: "rd mr mw me hg", or nothing.
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      inside = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    if (inside && line.starts_with("VmFlags:")) return line;
  }
  return {};
}

TEST(FileMap, HugePagesAreAskedForAndNothingElseChanges) {
  const test::TempFolder folder;
  const Result<FileMap> map = FileMap::open(folder.write("weights", std::string(3 << 20, 'w')));
  ASSERT_TRUE(map.ok());
  map->ask_for_huge_pages();
  EXPECT_EQ(static_cast<char>(map->bytes()[2 << 20]), 'w');
  FileMap::open(folder.write("empty", ""))->ask_for_huge_pages();
  const std::string flags = flags_of(map->bytes().data());
  if (madvise(const_cast<std::byte*>(map->bytes().data()), map->bytes().size(), MADV_HUGEPAGE) != 0 || flags.empty())
    GTEST_SKIP() << "this kernel has no huge pages for files, or does not show them";
  EXPECT_NE(flags.find(" hg"), std::string::npos) << flags;
}

}  // namespace
}  // namespace latte
