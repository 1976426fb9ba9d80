#include "io/new_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temp_folder.h"

namespace latte::test {
namespace {

namespace fs = std::filesystem;

int entries(const std::string& folder) { return static_cast<int>(std::distance(fs::directory_iterator(folder), {})); }

NewFolder begun_folder(const std::string& path) {
  Result<NewFolder> folder = NewFolder::begin(path);
  if (!folder.ok()) ADD_FAILURE() << folder.error().message;
  return std::move(folder).value();
}

std::string refusal(const std::string& path) {
  const Result<NewFolder> folder = NewFolder::begin(path);
  return folder.ok() ? "(begun)" : folder.error().message;
}

TEST(NewFolder, IsNotThereUntilCommitAndWholeAfterIt) {
  const TempFolder place;
  const std::string source = place.write("text", "content");
  for (const std::string& name : {std::string("new"), std::string("slash/"), std::string("empty")}) {
    const std::string path = place.file(name);
    if (name == "empty") fs::create_directory(path);
    NewFolder folder = begun_folder(path);
    ASSERT_TRUE(folder.copy_in(source, "copy").ok());
    EXPECT_FALSE(fs::exists(path + "/copy"));
    ASSERT_TRUE(folder.commit().ok());
    std::ifstream copy(path + "/copy");
    EXPECT_EQ(std::string((std::istreambuf_iterator<char>(copy)), {}), "content");
    EXPECT_EQ(entries(path), 1);
  }
  EXPECT_EQ(entries(place.path()), 4) << "no temporary folder stays";
}

TEST(NewFolder, WithoutCommitNothingIsLeft) {
  const TempFolder place;
  const std::string source = place.write("text", "content");
  {
    const NewFolder folder = begun_folder(place.file("new"));
    ASSERT_TRUE(folder.copy_in(source, "copy").ok());
    EXPECT_EQ(entries(place.path()), 2);
  }
  EXPECT_EQ(entries(place.path()), 1);
}

TEST(NewFolder, WhatIsThereIsNeverReplaced) {
  const TempFolder place;
  place.write("file", "x");
  fs::create_directory(place.file("full"));
  place.write("full/file", "x");
  EXPECT_EQ(refusal(place.file("file")).find(place.file("file") + ": is a file, expected a new"), 0u);
  EXPECT_EQ(refusal(place.file("full")).find(place.file("full") + ": is a folder with something in it"), 0u);
  EXPECT_NE(refusal(place.file("no/such/place")).find("cannot be made: No such file or directory"), std::string::npos);
  EXPECT_NE(refusal(""), "(begun)");
  fs::create_symlink(place.file("nowhere"), place.file("link"));
  EXPECT_NE(refusal(place.file("link")).find("leads nowhere"), std::string::npos);
  NewFolder late = begun_folder(place.file("late"));
  fs::create_directory(place.file("late"));
  place.write("late/file", "x");
  const Status lost = late.commit();
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(lost.error().message.find("somebody else"), std::string::npos) << lost.error().message;
}

TEST(NewFolder, LeftoversOfTheDeadGoAndThoseOfTheLivingStay) {
  const TempFolder place;
  const std::string path = place.file("new");
  const pid_t child = fork();
  if (child == 0) {
    const Result<NewFolder> folder = NewFolder::begin(path);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(entries(place.path()), 1) << "the dead one's folder";
  fs::create_directory(place.file("new.latte-tmp-0123"));  // not such a name
  NewFolder living = begun_folder(path);
  EXPECT_EQ(entries(place.path()), 2);
  NewFolder other = begun_folder(path);
  EXPECT_EQ(entries(place.path()), 3);
  ASSERT_TRUE(living.commit().ok());
}

TEST(NewFolder, RoomIsAskedForBeforehand) {
  const TempFolder place;
  const NewFolder folder = begun_folder(place.file("new"));
  EXPECT_TRUE(folder.check_room(1).ok());
  const Status none = folder.check_room(std::uint64_t{1} << 62);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(
      none.error().message.find(place.file("new") + ": 4611686018427387904 bytes are to be written, the disk has "), 0u)
      << none.error().message;
}

}  // namespace
}  // namespace latte::test
