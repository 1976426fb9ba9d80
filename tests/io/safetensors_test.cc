#include "io/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>

#include "io/file_map.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

std::string with_length(std::uint64_t header_bytes, std::string_view header, std::string_view data = "") {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header_bytes >> (8 * i)));
  return file.append(header).append(data);
}

std::string file_of(std::string_view header, std::string_view data = "") {
  return with_length(header.size(), header, data);
}

Result<SafetensorsTable> parse(std::string_view file) {
  return parse_safetensors({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.safetensors");
}

std::string table_refusal(std::string_view file) { return test::refusal(parse(file)); }

void expect_refused(std::string_view file, std::string_view part) {
  EXPECT_NE(table_refusal(file).find(part), std::string::npos) << table_refusal(file) << "\nexpected: " << part;
}

TEST(ParseSafetensors, ReadsEveryDtypeWord) {
  for (const std::string_view word : {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0", "I64", "I32", "I16",
                                      "I8", "U64", "U32", "U16", "U8", "BOOL"}) {
    const Result<DType> dtype = parse_dtype(word);
    ASSERT_TRUE(dtype.ok()) << word;
    EXPECT_EQ(dtype_name(*dtype), word);
    const std::size_t bytes = 6 * dtype_bytes(*dtype);
    const Result<SafetensorsTable> table =
        parse(file_of("{\"t\":{\"dtype\":\"" + std::string(word) + "\",\"shape\":[2,3],\"data_offsets\":[0," +
                          std::to_string(bytes) + "]}}",
                      std::string(bytes, 'x')));
    ASSERT_TRUE(table.ok()) << table.error().message;
    EXPECT_EQ(table->tensors[0].dtype, *dtype);
    EXPECT_EQ(table->tensors[0].bytes, bytes);
  }
}

TEST(ParseSafetensors, KeepsMetadataScalarsEmptiesAndDataOrder) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"z":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
      R"("a":{"dtype":"I16","shape":[1],"data_offsets":[1,3]},"e":{"dtype":"F32","shape":[4,0],"data_offsets":[1,1]}}   )";
  const Result<SafetensorsTable> table = parse(file_of(header, "abc"));
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->metadata.at("format"), "pt");
  ASSERT_EQ(table->tensors.size(), 3u);
  EXPECT_EQ(table->tensors[0].name, "z");
  EXPECT_EQ(table->tensors[1].name, "e");
  EXPECT_EQ(table->tensors[2].name, "a");
  EXPECT_EQ(table->tensors[2].offset, 8 + header.size() + 1);
}

TEST(ParseSafetensors, FileTooShortForAHeaderIsRefused) {
  EXPECT_EQ(table_refusal(""),
            "m.safetensors: 0 bytes, expected at least the 8 of a safetensors header length; download it again");
  expect_refused("1234567", "7 bytes");
}

TEST(ParseSafetensors, HeaderLongerThanTheFileIsRefused) {
  expect_refused(with_length(3, "{}"), "m.safetensors: header length 3, expected at most 2");
  expect_refused(with_length(UINT64_MAX, "{}"), "header length 18446744073709551615");
  expect_refused(with_length(UINT64_MAX - 7, "{}"), "header length");
}

TEST(ParseSafetensors, BrokenHeaderIsRefused) {
  expect_refused(file_of("{\"a\":"), "m.safetensors: not valid JSON at byte");
  expect_refused(file_of("[]"), "m.safetensors: header [...], expected an object");
  expect_refused(file_of(R"({"t":3})"), "m.safetensors: tensor \"t\": entry 3, expected an object");
  expect_refused(file_of(R"({"__metadata__":[]})"), "__metadata__ [...], expected an object");
  expect_refused(file_of(R"({"__metadata__":{"k":1}})"), "__metadata__ key \"k\": 1, expected a string");
}

TEST(ParseSafetensors, RepeatedNameIsRefused) {
  expect_refused(
      file_of(
          R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "a"),
      "m.safetensors: key \"t\" is given twice");
}

TEST(ParseSafetensors, UnknownDtypeNamesTensor) {
  expect_refused(file_of(R"({"t":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "a"),
                 "m.safetensors: tensor \"t\": dtype \"F4\", expected one of F64");
  expect_refused(file_of(R"({"t":{"shape":[2],"data_offsets":[0,1]}})", "a"),
                 "tensor \"t\": dtype: arrived nothing, expected one of F64");
}

TEST(ParseSafetensors, BadShapeNamesTensor) {
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "a"),
                 "tensor \"t\": shape: arrived ");
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "a"),
                 "tensor \"t\": shape: arrived ");
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", "a"),
                 "tensor \"t\": shape");
  expect_refused(file_of(R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", "a"), "tensor \"t\": shape: arrived nothing");
}

TEST(ParseSafetensors, ShapeProductOverflowNamesTensor) {
  expect_refused(file_of(R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
                 "tensor \"t\": shape [4294967296, 4294967296] holds more bytes than 64 bits count");
}

TEST(ParseSafetensors, SizeThatContradictsShapeNamesTensor) {
  expect_refused(file_of(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd"),
                 "tensor \"t\": data_offsets span 4 bytes, expected 8 for shape [2] of F32");
}

TEST(ParseSafetensors, RangeOutsideTheFileNamesTensor) {
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "abc"),
                 "m.safetensors: tensor \"t\": data_offsets [0, 4] leave the 3 bytes of data");
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "abcd"),
                 "tensor \"t\": data_offsets [4, 0]");
  expect_refused(
      file_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]}})", "abcd"),
      "tensor \"t\": data_offsets");
  expect_refused(file_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "a"),
                 "tensor \"t\": data_offsets: arrived ");
}

TEST(ParseSafetensors, OverlapNamesBothTensors) {
  expect_refused(
      file_of(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "abc"),
      "m.safetensors: tensor \"b\": its data overlap those of tensor \"a\"");
}

TEST(ParseSafetensors, HolesAndTrailingBytesAreRefused) {
  expect_refused(
      file_of(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          "abc"),
      "tensor \"b\": 1 bytes between its data and those of \"a\" belong to no tensor");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "abc"),
                 "2 bytes after the last tensor \"a\" belong to no tensor");
  expect_refused(file_of("{}", "abc"), "3 bytes after the last tensor (none)");
}

TEST(ParseSafetensors, NamesInMessagesStayOnOneLine) {
  expect_refused(file_of(R"({"a\nb":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "a"),
                 R"(tensor "a\nb": dtype)");
}

TEST(ParseSafetensors, EveryTruncationOfAGoodFileIsRefused) {
  const std::string good = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "abcdefgh");
  ASSERT_TRUE(parse(good).ok());
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parse(std::string_view(good).substr(0, size)).ok()) << size;
}

TEST(ParseSafetensors, OneChangedByteNeverGivesARangeOutsideTheFile) {
  const std::string good = file_of(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})",
      "abcdefghi");
  EXPECT_TRUE(rc::check([&] {
    std::string file = good;
    file[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(good.size())))] = *rc::gen::arbitrary<char>();
    const Result<SafetensorsTable> table = parse(file);
    if (!table.ok()) return;
    for (const TensorInfo& tensor : table->tensors) RC_ASSERT(tensor.offset + tensor.bytes <= file.size());
  }));
}

TEST(WriteSafetensors, IsReadBack) {
  const test::TempFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<TensorSource> sources = {{"w", DType::kF32, {2, 3}, values.data()},
                                             {"none", DType::kBf16, {0}, nullptr}};
  ASSERT_TRUE(write_safetensors(folder.file("m.safetensors"), sources, {{"format", "pt"}}).ok());
  const Result<FileMap> file = FileMap::open(folder.file("m.safetensors"));
  ASSERT_TRUE(file.ok());
  const Result<SafetensorsTable> table = parse_safetensors(file->bytes(), file->path());
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->metadata.at("format"), "pt");
  const TensorInfo& w = table->tensors[0].name == "w" ? table->tensors[0] : table->tensors[1];
  EXPECT_EQ(w.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(w.offset % 8, 0u);
  EXPECT_EQ(std::memcmp(file->bytes().data() + w.offset, values.data(), w.bytes), 0);
}

TEST(WriteSafetensors, NamesAPathItCannotWrite) {
  const Status written = write_safetensors("/nonexistent/m.safetensors", {});
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("/nonexistent/m.safetensors: cannot open for writing"), std::string::npos);
}

TEST(SafetensorsHead, DataStartsWhereItIsAskedTo) {
  std::vector<TensorSource> tensors;
  for (int i = 0; i < 200; i += 20) {
    tensors.push_back({std::string(static_cast<std::size_t>(i + 1), 'n'), DType::kU8, {2, i}, nullptr});
    for (const std::size_t alignment : {8, 64, 4096}) {
      const std::string head = safetensors_head(tensors, alignment, {{"key", "value"}});
      EXPECT_EQ(head.size() % alignment, 0u);
      std::size_t data = 0;
      for (const TensorSource& tensor : tensors) data += tensor.bytes();
      const std::string file = head + std::string(data, 'x');
      const Result<SafetensorsTable> table = parse(file);
      ASSERT_TRUE(table.ok()) << table.error().message;
      EXPECT_EQ(table->tensors.size(), tensors.size());
      EXPECT_EQ(table->tensors.front().offset, head.size());
    }
  }
}

}  // namespace
}  // namespace latte
