// SPDX-License-Identifier: Apache-2.0
// Finished samples in a file of JSON lines, so that an interrupted run can go on.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "lipscope/robustness.h"

namespace lipscope::app {

struct LogLimits {
  Index samples = 0, classes = 0;  // indices and rivals are below these
};

struct EarlierSamples {
  std::map<Index, Decision> decisions;
  std::string text;  // of the file, without a last line that was cut off
};

// The samples in the text of a file, called `name`: first the question, then a line each. kBadFile
// for another question and for a line that no run with this question can have written.
[[nodiscard]] EarlierSamples read_samples(std::string_view text, std::string_view name,
                                          const Json& question, const LogLimits& limits);

// May be told from several threads.
class SampleLog {
 public:
  // A file that read_samples refuses stays as it is. An empty path keeps nothing.
  SampleLog(const std::string& path, const Json& question, const LogLimits& limits);
  ~SampleLog();
  SampleLog(const SampleLog&) = delete;
  SampleLog& operator=(const SampleLog&) = delete;

  // What earlier runs found, by sample; predictions are not kept.
  [[nodiscard]] const std::map<Index, Decision>& earlier() const { return earlier_; }
  // On disk when it returns. Throws kBadFile when it cannot be written.
  void add(Index sample, const Decision& decision);

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  std::mutex mutex_;
  std::map<Index, Decision> earlier_;
};

}  // namespace lipscope::app
