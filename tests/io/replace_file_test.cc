#include "io/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temp_folder.h"

namespace latte::test {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int entries(const TempFolder& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

FileReplacement begun(const std::string& path) {
  Result<FileReplacement> file = FileReplacement::begin(path);
  if (!file.ok()) ADD_FAILURE() << file.error().message;
  return std::move(file).value();
}

Status write(FileReplacement& file, std::string_view text) { return file.write(std::as_bytes(std::span(text))); }

TEST(ReplaceFile, OldContentStandsUntilCommit) {
  const TempFolder folder;
  const std::string path = folder.write("cache", "old");
  FileReplacement file = begun(path);
  ASSERT_TRUE(write(file, "new ").ok());
  ASSERT_TRUE(write(file, "text").ok());
  EXPECT_EQ(content(path), "old");
  ASSERT_TRUE(file.commit().ok());
  EXPECT_EQ(content(path), "new text");
  EXPECT_EQ(entries(folder), 1);
}

TEST(ReplaceFile, WithoutCommitNothingIsLeft) {
  const TempFolder folder;
  const std::string path = folder.write("cache", "old");
  {
    FileReplacement file = begun(path);
    ASSERT_TRUE(write(file, "new").ok());
    EXPECT_EQ(entries(folder), 2);
  }
  EXPECT_EQ(entries(folder), 1);
  EXPECT_EQ(content(path), "old");
}

TEST(ReplaceFile, TemporaryFilesOfDeadWritersGo) {
  const TempFolder folder;
  const std::string path = folder.file("cache");
  folder.write("cache.latte-tmp-0123456789abcdef", "of a dead writer");
  const std::string other = folder.write("cache.latte-tmp-mine", "not a temporary name");
  const std::string foreign = folder.write("cache2.latte-tmp-0123456789abcdef", "of another file");
  FileReplacement alive = begun(path);
  EXPECT_EQ(entries(folder), 3) << "the dead writer's is gone";
  FileReplacement second = begun(path);
  EXPECT_EQ(entries(folder), 4) << "one whose writer lives stays";
  ASSERT_TRUE(alive.commit().ok());
  ASSERT_TRUE(second.commit().ok());
  EXPECT_EQ(content(other), "not a temporary name");
  EXPECT_EQ(content(foreign), "of another file");
  EXPECT_EQ(entries(folder), 3);
}

TEST(ReplaceFile, PermissionsStayAndLinksAreFollowed) {
  const TempFolder folder;
  const std::string path = folder.write("cache", "old"), link = folder.file("link");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::filesystem::create_symlink("cache", link);
  FileReplacement file = begun(link);
  ASSERT_TRUE(write(file, "new").ok());
  ASSERT_TRUE(file.commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST(ReplaceFile, WhatCannotBeReplacedIsRefusedInOneLine) {
  const TempFolder folder;
  std::filesystem::create_symlink("nowhere", folder.file("dangling"));
  for (const std::string& path : {folder.path(), folder.file("no/folder/cache"), folder.file("dangling"),
                                  folder.file(std::string(300, 'x')), std::string()}) {
    const Result<FileReplacement> file = FileReplacement::begin(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    EXPECT_NE(file.error().message.find("expected"), std::string::npos) << file.error().message;
  }
}

TEST(ReplaceFile, FullDiskIsAnErrorAndTheOldFileStays) {
  const TempFolder folder;
  const std::string path = folder.write("cache", "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 5000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Status written;
  {
    FileReplacement file = begun(path);
    written = write(file, std::string(10000, 'x'));
  }
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("nothing was changed"), std::string::npos) << written.error().message;
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(folder), 1);
}

}  // namespace
}  // namespace latte::test
