#include "api/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace latte {
namespace {

namespace fs = std::filesystem;

std::string read_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value of "key value" in a file of such lines.
std::string value_in_list(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return line.substr(key.size() + 1);
  }
  return "";
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end; entry.increment(unreadable))
    found.push_back(entry->path());
  return found;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue ..." to "535.54.03".
std::string nvidia_driver() {
  const std::string line = read_line("/proc/driver/nvidia/version");
  const std::size_t module = line.find("Module");
  const std::size_t first = module == std::string::npos ? module : line.find_first_of("0123456789", module);
  return first == std::string::npos ? "" : line.substr(first, line.find_first_of(" \t", first) - first);
}

}  // namespace

std::int64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0 ? std::int64_t{pages} * page : 0;
}

double load_average() {
  double minute = -1;
  return getloadavg(&minute, 1) == 1 ? minute : -1;
}

std::int64_t available_memory_bytes() {
  const auto number = [](const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); };
  std::int64_t available = number(labelled_value("/proc/meminfo", "MemAvailable")) * 1024;
  const std::int64_t most = number(read_line("/sys/fs/cgroup/memory.max"));  // "max" is 0
  const std::int64_t used = number(read_line("/sys/fs/cgroup/memory.current"));
  const std::int64_t files = number(value_in_list("/sys/fs/cgroup/memory.stat", "inactive_file"));
  if (most > 0) available = std::min(available, std::max<std::int64_t>(0, most - used + files));
  return available;
}

std::vector<GpuState> find_gpus() {
  std::vector<GpuState> gpus;
  const std::string driver = nvidia_driver();
  for (const fs::path& gpu : entries("/proc/driver/nvidia/gpus")) {
    std::string name = labelled_value(gpu / "information", "Model");
    gpus.push_back({.name = name.empty() ? "NVIDIA GPU " + gpu.filename().string() : name,
                    .driver = driver,
                    .used = false,
                    .reason = "the cuda device is not in this build"});
  }
  if (!gpus.empty()) return gpus;
  for (const fs::path& device : entries("/sys/bus/pci/devices")) {
    const bool display = read_line(device / "class").starts_with("0x03");
    if (!display || read_line(device / "vendor") != "0x10de") continue;
    gpus.push_back(
        {.name = fmt::format("NVIDIA device {} at {}", read_line(device / "device"), device.filename().string()),
         .driver = "",
         .used = false,
         .reason = "its driver is not loaded, and the cuda device is not in this build"});
  }
  return gpus;
}

bool huge_pages_possible() {
  const std::string choice = read_line("/sys/kernel/mm/transparent_hugepage/enabled");
  return !choice.empty() && choice.find("[never]") == std::string::npos;
}

}  // namespace latte
