#include "io/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/refusal.h"
#include "support/stored_tensors.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

/// Two shards, one tensor each, and an index given by the test.
class Shards {
 public:
  explicit Shards(std::string_view index) {
    EXPECT_TRUE(test::write_tensors(folder_.file("one.safetensors"), {{"a", test::float_tensor({2}, {1, 2})}}).ok());
    EXPECT_TRUE(test::write_tensors(folder_.file("two.safetensors"), {{"b", test::float_tensor({1}, {3})}}).ok());
    folder_.write("model.safetensors.index.json", index);
  }
  Result<Checkpoint> open() const { return Checkpoint::open(folder_.path()); }
  std::string refusal() const { return test::refusal(open()); }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

TEST(Checkpoint, OneFileGivesItsTensors) {
  Result<Checkpoint> opened = Checkpoint::open(LATTE_SOURCE_DIR "/tests/data/families/moonlight");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Checkpoint checkpoint = *std::move(opened);
  const TensorView* norm = checkpoint.find("model.norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->shape, (std::vector<std::int64_t>{48}));
  EXPECT_EQ(norm->bytes, 192u);
  EXPECT_TRUE(norm->aligned);
  EXPECT_EQ(norm->file, LATTE_SOURCE_DIR "/tests/data/families/moonlight/model.safetensors");
  EXPECT_EQ(checkpoint.find("model.norm"), nullptr);
}

TEST(Checkpoint, ShardsGiveTheirTensors) {
  const Shards shards(R"({"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const Result<Checkpoint> checkpoint = shards.open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(*static_cast<const float*>(checkpoint->find("b")->data), 3.0f);
  EXPECT_EQ(checkpoint->find("b")->file, shards.folder().file("two.safetensors"));
}

TEST(Checkpoint, ALinkThatLeadsNowhereIsNoAbsentFile) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    const test::TempFolder folder;
    std::filesystem::create_symlink("gone", folder.file(name));
    const Result<Checkpoint> opened = Checkpoint::open(folder.path());
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find(std::string(name) + ": a link to something that is not there"),
              std::string::npos)
        << opened.error().message;
  }
}

TEST(Checkpoint, MissingShardNamesFileAndTensor) {
  const Shards shards(R"({"weight_map":{"a":"one.safetensors","b":"three.safetensors"}})");
  EXPECT_EQ(
      shards.refusal(),
      shards.folder().file("three.safetensors") +
          ": no such file, but model.safetensors.index.json names it for tensor \"b\": download the missing shard");
}

TEST(Checkpoint, TensorAbsentFromItsShardIsNamed) {
  const Shards absent(R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})");
  EXPECT_EQ(absent.refusal(), absent.folder().file("two.safetensors") +
                                  ": does not hold tensor \"c\", but model.safetensors.index.json says so");
}

TEST(Checkpoint, TensorInTheOtherShardIsNamed) {
  const Shards swapped(R"({"weight_map":{"a":"two.safetensors","b":"one.safetensors"}})");
  EXPECT_NE(swapped.refusal().find("two.safetensors: does not hold tensor \"a\""), std::string::npos)
      << swapped.refusal();
}

TEST(Checkpoint, TensorInTwoShardsIsNamed) {
  const Shards shards(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  ASSERT_TRUE(test::write_tensors(shards.folder().file("two.safetensors"),
                                  {{"a", test::float_tensor({1}, {3})}, {"b", test::float_tensor({1}, {3})}})
                  .ok());
  EXPECT_EQ(shards.refusal(), shards.folder().file("two.safetensors") + ": tensor \"a\" is also in " +
                                  shards.folder().file("one.safetensors") + ", expected it in one file");
}

TEST(Checkpoint, ShardNamesThatLeaveTheFolderAreRefused) {
  for (const std::string name : {R"("../one.safetensors")", R"("/etc/passwd")", R"("sub/one.safetensors")", R"("..")",
                                 R"("")", R"("a\u0000b")", R"("sub\\one")", "3", "null"}) {
    const Shards shards(R"({"weight_map":{"a":)" + name + "}}");
    EXPECT_NE(shards.refusal().find("model.safetensors.index.json: tensor \"a\" maps to"), std::string::npos)
        << shards.refusal();
  }
}

TEST(Checkpoint, IndexWithoutMapIsRefused) {
  for (const char* index : {"{}", "[]", R"({"weight_map":[]})", R"({"weight_map":null})"}) {
    const Shards shards(index);
    EXPECT_NE(shards.refusal().find("model.safetensors.index.json: weight_map: arrived "), std::string::npos)
        << shards.refusal();
  }
}

TEST(Checkpoint, RepeatedNameInTheIndexIsRefused) {
  const Shards shards(R"({"weight_map":{"a":"one.safetensors","a":"two.safetensors"}})");
  EXPECT_NE(shards.refusal().find("model.safetensors.index.json: key \"a\" is given twice"), std::string::npos)
      << shards.refusal();
}

TEST(Checkpoint, ShardOfZeroBytesIsNamed) {
  const Shards shards(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  shards.folder().write("two.safetensors", "");
  EXPECT_NE(shards.refusal().find("two.safetensors: 0 bytes"), std::string::npos) << shards.refusal();
}

TEST(Checkpoint, FolderWithoutWeightsIsNamed) {
  const test::TempFolder folder;
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.error().message,
            folder.path() +
                ": no model.safetensors nor model.safetensors.index.json in it, expected the weights of a model "
                "beside its config.json: download them");
  const Result<Checkpoint> nowhere = Checkpoint::open(folder.file("none"));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().message, folder.file("none") + ": no such folder, expected a model folder");
}

TEST(Checkpoint, MisalignedDataIsSaidToBe) {
  const test::TempFolder folder;
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} )";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  ASSERT_NE(header.size() % 4, 0u);
  folder.write("model.safetensors", file + header + "abcd");
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->find("a")->aligned);
}

}  // namespace
}  // namespace latte
