// SPDX-License-Identifier: Apache-2.0
// A small mutation fuzzer: fuzz_X [FILES OR FOLDERS...] [--seconds S] [--seed N] [--reproduce FILE]
#include "driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

// Present when a sanitizer is linked.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));
// Read by the sanitizers when the program starts.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=2048:hard_rss_limit_mb=3072:allocator_may_return_null=0";
}
extern "C" const char* __ubsan_default_options();
extern "C" const char* __ubsan_default_options() {
  // Beside the address sanitizer, this one has a death callback of its own; abort() reaches ours.
  return "halt_on_error=1:print_stacktrace=1:abort_on_error=1";
}

// Defined by targets that know how to change their input and keep its form.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed)
    __attribute__((weak));

namespace lipscope::fuzz {
namespace {

constexpr std::size_t kMaxInputBytes = std::size_t{1} << 16U;
constexpr std::size_t kMaxCorpus = 2000;
constexpr int kMaxInputSeconds = 2;  // of processor time, so that a busy machine fails nothing
constexpr rlim_t kMaxMemoryBytes = rlim_t{3} << 30U;

using Random = std::mt19937_64;

struct Options {
  std::string program;
  std::vector<std::string> corpus;
  std::string reproduce;
  double seconds = 5.0;
  std::uint64_t seed = 1;
};

std::size_t below(Random& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

// Signal handlers see these; they are set before the first input runs.
char crash_path[4096];
const Input* current = nullptr;

// Only calls that are allowed in a signal handler.
void save_current() {
  if (current == nullptr) return;
  const int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  const bool saved = write(file, current->data(), current->size()) >= 0;
  close(file);
  const char* told[] = {
      saved ? "input saved; run again with --reproduce " : "input not saved: ", crash_path, "\n"};
  for (const char* text : told) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
  }
  current = nullptr;
}

void on_signal(int signal) {
  constexpr char kSlow[] = "an input took more than 2 s\n";
  if (signal == SIGPROF && write(STDERR_FILENO, kSlow, sizeof kSlow - 1) < 0) _exit(1);
  save_current();
  _exit(1);
}

void install_guards() {
  std::vector<int> signals = {SIGABRT, SIGPROF};
  if (__sanitizer_set_death_callback != nullptr) {
    // The sanitizer reports the other signals itself; its shadow memory breaks any limit.
    __sanitizer_set_death_callback(save_current);
  } else {
    signals.insert(signals.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
    const rlimit limit = {kMaxMemoryBytes, kMaxMemoryBytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  for (const int signal : signals) std::signal(signal, on_signal);
}

// False when the input made the target throw something it should not.
bool run_one(const Input& one) {
  current = &one;
  itimerval timer{};
  timer.it_value.tv_sec = kMaxInputSeconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
  bool clean = true;
  try {
    // An exact heap copy, so that the address sanitizer sees a read past the end.
    const Input copy(one);
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
  } catch (const std::exception& error) {
    fmt::print(stderr, "uncaught: {}\n", error.what());
    save_current();
    clean = false;
  }
  timer.it_value.tv_sec = 0;
  setitimer(ITIMER_PROF, &timer, nullptr);
  current = nullptr;
  return clean;
}

void tweak_number(Input& data, Random& random) {
  constexpr std::uint64_t kValues[] = {0,      1,          0x7f,       0x80,        0xff,
                                       0x7fff, 0xffff,     0x7fffffff, 0x80000000U, 0xffffffffU,
                                       ~0ULL,  ~0ULL >> 1, 1ULL << 40, 1ULL << 62};
  const std::size_t width = std::size_t{1} << below(random, 4);
  if (data.size() < width) return;
  const std::size_t at = below(random, data.size() - width + 1);
  const std::uint64_t value =
      random() % 2 == 0 ? kValues[below(random, std::size(kValues))] : data[at] + random() % 17 - 8;
  const bool big = random() % 2 == 0;
  for (std::size_t k = 0; k < width; ++k) {
    data[at + (big ? width - 1 - k : k)] = static_cast<std::uint8_t>(value >> (8 * k));
  }
}

// Numbers written as text, as in headers and csv.
void tweak_text(Input& data, Random& random) {
  constexpr std::string_view kTexts[] = {"0",
                                         "-1",
                                         "9223372036854775807",
                                         "18446744073709551616",
                                         "1e9",
                                         ",",
                                         "99999999999",
                                         "'",
                                         "(",
                                         ")",
                                         "nan",
                                         "\n"};
  const std::string_view text = kTexts[below(random, std::size(kTexts))];
  const std::size_t at = below(random, data.size() + 1);
  const std::size_t erased = std::min(below(random, 4), data.size() - at);
  const auto begin = data.begin() + static_cast<std::ptrdiff_t>(at);
  data.insert(data.erase(begin, begin + static_cast<std::ptrdiff_t>(erased)), text.begin(),
              text.end());
}

void mutate_once(Input& data, const Input& other, Random& random) {
  const std::size_t from = below(random, data.size());
  const std::size_t count =
      std::min(data.size() - from, std::size_t{1} << below(random, random() % 4 == 0 ? 12 : 4));
  const auto begin = data.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  switch (random() % 10) {
    case 0:
      if (!data.empty()) data[from] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      break;
    case 1:
      if (!data.empty()) data[from] = static_cast<std::uint8_t>(random());
      break;
    case 2: data.erase(begin, end); break;
    case 3: data.resize(from); break;
    case 4: {
      const Input chunk(begin, end);
      const auto at = static_cast<std::ptrdiff_t>(below(random, data.size() + 1));
      data.insert(data.begin() + at, chunk.begin(), chunk.end());
      break;
    }
    case 5: data.insert(begin, count, static_cast<std::uint8_t>(random())); break;
    case 6: {
      const auto cut = static_cast<std::ptrdiff_t>(below(random, other.size()));
      data.resize(from);
      data.insert(data.end(), other.begin() + cut, other.end());
      break;
    }
    case 7: tweak_text(data, random); break;
    default: tweak_number(data, random); break;
  }
}

Input mutated(const std::vector<Input>& corpus, Random& random) {
  Input data = corpus[below(random, corpus.size())];
  const Input& other = corpus[below(random, corpus.size())];
  if (LLVMFuzzerCustomMutator != nullptr && random() % 4 != 0) {
    const std::size_t size = data.size();
    data.resize(kMaxInputBytes);
    data.resize(
        LLVMFuzzerCustomMutator(data.data(), size, data.size(), static_cast<unsigned>(random())));
    return data;
  }
  const std::size_t times = std::size_t{1} << below(random, 5);
  for (std::size_t i = 0; i < times; ++i) mutate_once(data, other, random);
  if (data.size() > kMaxInputBytes) data.resize(kMaxInputBytes);
  return data;
}

Input read_input(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return input(text);
}

std::vector<Input> read_corpus(const std::vector<std::string>& paths) {
  std::vector<Input> corpus = seeds();
  const auto add = [&](const std::filesystem::path& path) {
    if (std::filesystem::file_size(path) <= kMaxInputBytes) corpus.push_back(read_input(path));
  };
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      add(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) add(entry.path());
    }
  }
  if (corpus.empty()) corpus.emplace_back();
  return corpus;
}

Options parse_options(int argc, char** argv) {
  Options options;
  options.program = std::filesystem::path(argv[0]).filename().string();
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (!flag.starts_with("--")) {
      options.corpus.emplace_back(flag);
      continue;
    }
    if (++i == argc) throw std::runtime_error(fmt::format("{} needs a value", flag));
    if (flag == "--seconds") {
      options.seconds = std::stod(argv[i]);
    } else if (flag == "--seed") {
      options.seed = std::stoull(argv[i]);
    } else if (flag == "--reproduce") {
      options.reproduce = argv[i];
    } else {
      throw std::runtime_error(fmt::format(
          "unknown flag {}; there are --seconds S, --seed N and --reproduce FILE", flag));
    }
  }
  return options;
}

int fuzz(const Options& options) {
  std::vector<Input> corpus = read_corpus(options.corpus);
  Random random(options.seed);
  std::set<std::size_t> outcomes;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::uint64_t runs = 0;
  int crashes = 0;
  // The corpus itself goes first, whatever the time.
  const std::size_t given = corpus.size();
  const std::size_t num_seeds = seeds().size();
  while (crashes == 0 && (runs < given || elapsed() < options.seconds)) {
    const Input one = runs < given ? corpus[runs] : mutated(corpus, random);
    if (!run_one(one)) ++crashes;
    if (runs < num_seeds && last_outcome != 0) {
      throw std::runtime_error(fmt::format("{}: seed {} is refused", options.program, runs));
    }
    if (outcomes.insert(last_outcome).second && runs >= given && corpus.size() < kMaxCorpus) {
      corpus.push_back(one);
    }
    ++runs;
  }
  fmt::print("{}: {} runs in {:.1f} s, seed {}, {} outcomes, {} crashes\n", options.program, runs,
             elapsed(), options.seed, outcomes.size(), crashes);
  return crashes == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lipscope::fuzz

int main(int argc, char** argv) try {
  using namespace lipscope::fuzz;
  const Options options = parse_options(argc, argv);
  const std::string name = fmt::format("crash-{}-{}.bin", options.program, options.seed);
  name.copy(crash_path, sizeof crash_path - 1);
  install_guards();
  if (options.reproduce.empty()) return fuzz(options);
  const bool clean = run_one(read_input(options.reproduce));
  fmt::print("{}: {}: {}\n", options.program, options.reproduce, clean ? "clean" : "crash");
  return clean ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
