#pragma once

#include <filesystem>
#include <string>

namespace latte {

// What is written beside its place and then renamed is called NAME.latte-tmp- and 16 hexadecimal digits. Its writer
// holds a lock on it, which the system gives up with the writer.

/// The folder that `target` lies in.
std::filesystem::path folder_of(const std::filesystem::path& target);

/// A new temporary name beside `target`.
std::string temporary_name(const std::filesystem::path& target);

/// Temporary names that are tried when others take them first.
inline constexpr int kNameTries = 16;

/// Takes the lock of what `descriptor` has open and was just made. False: a remover of stale ones came between, and it
/// is gone. Where the file system has no locks nobody removes it.
bool lock_new(int descriptor);

/// Removes what writers that are gone left beside `target`: files, or folders with all that is in them. What cannot be
/// looked at or removed stays.
void remove_stale(const std::filesystem::path& target, std::filesystem::file_type type);

/// Makes a rename in `folder` last through a power cut. 0, or an errno; a folder that may not be read and a file system
/// that flushes no folders are no error.
int flush_folder(const std::filesystem::path& folder);

}  // namespace latte
