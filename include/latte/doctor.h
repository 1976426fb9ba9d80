#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/error.h"

namespace latte {

/// One instruction set that latte knows of, and why it is not the one in use.
struct IsaState {
  std::string name;
  bool in_processor = false;
  bool in_build = false;
  bool used = false;
  std::string reason;  ///< why it is not used; empty when it is
};

/// Speed of matrix products of one stored weight type.
struct MatmulRate {
  std::string type;     ///< of the weights: "f32", "bf16"
  std::string compute;  ///< what the products run in
  double gflops = 0;
};

/// The rate of one dot instruction with all operands in registers, which no product of its set can exceed.
struct InstructionRate {
  std::string isa;           ///< the narrowest instruction set that has it
  std::string type;          ///< of the operands: "f32", "bf16", "int8"
  std::string instruction;   ///< as the processor's manual calls it
  double gops = 0;           ///< 10^9 multiplications and additions a second, all threads together
  double gops_per_core = 0;  ///< the same for each thread
};

/// Products of oneDNN, of 512 x 512 matrices: what a tuned library makes of this processor.
struct OneDnnRate {
  std::string type;  ///< of the operands: "f32", "bf16", "int8"
  std::string call;  ///< its function
  double gops = 0;   ///< as InstructionRate::gops
};
struct OneDnnReport {
  bool installed = false;
  std::string version;           ///< "2.6.3"
  std::vector<OneDnnRate> gemm;  ///< of the types that it multiplies here
};

/// A graphics processor that the system shows.
struct GpuState {
  std::string name;
  std::string driver;  ///< version; empty: no driver is loaded
  bool used = false;
  std::string reason;  ///< why it is not used
};

/// Something that is not there, and how to get it.
struct MissingThing {
  std::string what;
  std::string remedy;
};

struct DoctorReport {
  std::string processor;
  std::vector<IsaState> isas;
  std::string isa_used;
  std::string isa_chosen_by;  ///< "asked", "table" (of processors), "stored" (rates measured earlier)
  int threads = 0;            ///< that latte would use
  int logical_cores = 0;
  double load_average = 0;  ///< of the last minute, before the measurements; -1: unknown
  bool busy = false;        ///< others keep the processor busy: the measured speeds are too low
  std::int64_t memory_bytes = 0;
  double read_gbytes_per_second = 0;  ///< all threads reading memory in a row
  std::vector<MatmulRate> matmul;
  std::vector<InstructionRate> rates;  ///< of every instruction set that can be used here, narrowest first
  OneDnnReport onednn;
  std::vector<GpuState> gpus;
  std::vector<std::string> models;  ///< embedded models found by name
  std::vector<MissingThing> missing;
};

struct DoctorOptions {
  std::string isa = "auto";  ///< as EngineOptions::isa
  int threads = 0;           ///< as EngineOptions::threads
};

/// Looks at the machine and measures it for one to two seconds. Errors: an instruction set or thread count that is not
/// there, no memory.
Result<DoctorReport> examine_machine(const DoctorOptions& options = {});

}  // namespace latte
