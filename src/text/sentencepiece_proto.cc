#include "text/sentencepiece_proto.h"

#include <bit>
#include <cmath>
#include <optional>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace latte {
namespace {

using Piece = SentencePieceProto::Piece;
using Type = SentencePieceProto::Type;

// One field of a protobuf message: its number and its value, a number or a run of bytes.
struct Field {
  std::uint64_t number = 0;
  bool is_bytes = false;
  std::uint64_t value = 0;
  std::string_view bytes;
};

// Reads the fields of a message one by one. `at` counts from the start of the file.
class FieldReader {
 public:
  FieldReader(std::string_view message, std::size_t base) : rest_(message), base_(base), size_(message.size()) {}

  bool done() const { return rest_.empty(); }
  std::size_t at() const { return base_ + size_ - rest_.size(); }

  // The next field; nothing when the bytes are no field.
  std::optional<Field> next() {
    const auto key = varint();
    if (!key.has_value()) return std::nullopt;
    Field field;
    field.number = *key >> 3;
    switch (*key & 7) {
      case 0: {
        const auto value = varint();
        if (!value.has_value()) return std::nullopt;
        field.value = *value;
        return field;
      }
      case 1:
        return fixed(8, field);
      case 2: {
        const auto length = varint();
        if (!length.has_value() || *length > rest_.size()) return std::nullopt;
        field.is_bytes = true;
        field.bytes = rest_.substr(0, *length);
        rest_.remove_prefix(*length);
        return field;
      }
      case 5:
        return fixed(4, field);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> fixed(std::size_t bytes, Field field) {
    if (rest_.size() < bytes) return std::nullopt;
    for (std::size_t i = bytes; i-- > 0;) field.value = field.value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return field;
  }

  std::string_view rest_;
  std::size_t base_;
  std::size_t size_;
};

class Parser {
 public:
  Parser(std::string_view bytes, std::string_view file, SentencePieceProto& out)
      : bytes_(bytes), file_(file), out_(out) {}

  Status run() {
    return each(bytes_, 0, [&](const Field& field, std::size_t at) -> Status {
      if (!field.is_bytes) return {};
      if (field.number == 1) return piece(field.bytes, at);
      if (field.number == 2) return trainer(field.bytes, at);
      if (field.number == 3) return normalizer(field.bytes, at);
      return {};
    });
  }

 private:
  // Calls `visit(field, place of its bytes)` for each field of a message.
  template <class Visit>
  Status each(std::string_view message, std::size_t base, Visit visit) {
    FieldReader reader(message, base);
    while (!reader.done()) {
      const std::size_t at = reader.at();
      const auto field = reader.next();
      if (!field.has_value()) {
        return fail(
            ErrorKind::kInvalidInput,
            "{}: byte {} is no protobuf field, expected a SentencePiece model; the file may be truncated, fetch "
            "it again",
            file_, at);
      }
      if (Status visited = visit(*field, reader.at() - field->bytes.size()); !visited.ok()) return visited;
    }
    return {};
  }

  Status piece(std::string_view message, std::size_t base) {
    Piece piece;
    const std::size_t index = out_.pieces.size();
    Status read = each(message, base, [&](const Field& field, std::size_t) -> Status {
      if (field.number == 1 && field.is_bytes) piece.text = field.bytes;
      if (field.number == 2 && !field.is_bytes)
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      if (field.number == 3 && !field.is_bytes) {
        if (field.value < 1 || field.value > 6) {
          return fail(ErrorKind::kInvalidInput, "{}: piece {}: type {}, expected 1 to 6", file_, index, field.value);
        }
        piece.type = static_cast<Type>(field.value);
      }
      return {};
    });
    if (!read.ok()) return read;
    if (piece.text.empty() || !is_valid_utf8(piece.text) || piece.text.find('\0') != std::string::npos) {
      return fail(ErrorKind::kInvalidInput, "{}: piece {} is {}, expected a text in UTF-8 without NUL", file_, index,
                  quote_for_error(piece.text));
    }
    if (!std::isfinite(piece.score)) {
      return fail(ErrorKind::kInvalidInput, "{}: piece {}: score {}, expected a finite number", file_, index,
                  piece.score);
    }
    if (piece.type == Type::kByte && !byte_of_word(piece.text).has_value()) {
      return fail(ErrorKind::kInvalidInput, "{}: piece {} is the byte {}, expected <0x00> to <0xFF>", file_, index,
                  quote_for_error(piece.text));
    }
    if (index > static_cast<std::size_t>(kMaxTokenId)) {
      return fail(ErrorKind::kInvalidInput, "{}: more than {} pieces", file_, kMaxTokenId + 1);
    }
    out_.pieces.push_back(std::move(piece));
    return {};
  }

  Status trainer(std::string_view message, std::size_t base) {
    return each(message, base, [&](const Field& field, std::size_t) -> Status {
      if (field.is_bytes) return {};
      if (field.number == 3) {
        if (field.value != 1 && field.value != 2) {
          return fail(ErrorKind::kUnsupported, "{}: trainer_spec.model_type {}, expected 1 (unigram) or 2 (BPE)", file_,
                      field.value);
        }
        out_.unigram = field.value == 1;
      }
      if (field.number == 24 && field.value != 0) {
        return fail(ErrorKind::kUnsupported, "{}: trainer_spec.treat_whitespace_as_suffix is true, expected false",
                    file_);
      }
      if (field.number == 35) out_.byte_fallback = field.value != 0;
      if (field.number == 41) out_.bos_id = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
      if (field.number == 42) out_.eos_id = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
      return {};
    });
  }

  Status normalizer(std::string_view message, std::size_t base) {
    return each(message, base, [&](const Field& field, std::size_t at) -> Status {
      if (field.number == 2 && field.is_bytes) {
        if (!is_safe_charsmap(field.bytes)) {
          return fail(ErrorKind::kInvalidInput,
                      "{}: byte {}: normalizer_spec.precompiled_charsmap of {} bytes is broken; fetch the file again",
                      file_, at, field.bytes.size());
        }
        out_.charsmap = field.bytes;
      }
      if (field.is_bytes) return {};
      if (field.number == 3) out_.add_dummy_prefix = field.value != 0;
      if (field.number == 4) out_.remove_extra_whitespaces = field.value != 0;
      if (field.number == 5) out_.escape_whitespaces = field.value != 0;
      return {};
    });
  }

  std::string_view bytes_;
  std::string_view file_;
  SentencePieceProto& out_;
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(static_cast<unsigned char>(value | 0x80)));
  out.push_back(static_cast<char>(static_cast<unsigned char>(value)));
}

void put_number(std::string& out, std::uint64_t field, std::uint64_t value) {
  put_varint(out, field << 3);
  put_varint(out, value);
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

}  // namespace

Result<SentencePieceProto> SentencePieceProto::parse(std::string_view bytes, std::string_view file) {
  SentencePieceProto proto;
  if (Status read = Parser(bytes, file, proto).run(); !read.ok()) return read.error();
  if (proto.pieces.empty()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: {} bytes without a piece, expected a SentencePiece model; fetch it again", file, bytes.size());
  }
  std::size_t unknown = 0;
  for (const Piece& piece : proto.pieces) unknown += piece.type == Type::kUnknown ? 1 : 0;
  if (unknown != 1) {
    return fail(ErrorKind::kInvalidInput, "{}: {} pieces of the type unknown, expected one", file, unknown);
  }
  return proto;
}

std::string SentencePieceProto::serialize() const {
  std::string out;
  std::string message;
  for (const Piece& piece : pieces) {
    message.clear();
    put_bytes(message, 1, piece.text);
    put_varint(message, 2 << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(piece.score);
    for (int shift = 0; shift < 32; shift += 8) message.push_back(static_cast<char>(bits >> shift & 0xFF));
    put_number(message, 3, static_cast<std::uint64_t>(piece.type));
    put_bytes(out, 1, message);
  }
  message.clear();
  put_number(message, 3, unigram ? 1 : 2);
  put_number(message, 35, byte_fallback ? 1 : 0);
  put_bytes(out, 2, message);
  message.clear();
  put_bytes(message, 1, "identity");
  put_bytes(message, 2, charsmap);
  put_number(message, 3, add_dummy_prefix ? 1 : 0);
  put_number(message, 4, remove_extra_whitespaces ? 1 : 0);
  put_number(message, 5, escape_whitespaces ? 1 : 0);
  put_bytes(out, 3, message);
  return out;
}

}  // namespace latte
