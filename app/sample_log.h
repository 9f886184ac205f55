// SPDX-License-Identifier: Apache-2.0
// Finished samples in a file of JSON lines, so that an interrupted run can go on.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "base/json.h"
#include "lipscope/robustness.h"

namespace lipscope::app {

struct LogLimits {
  Index samples = 0, classes = 0;  // indices and rivals are below these
};

// May be told from several threads.
class SampleLog {
 public:
  // The first line of the file is `question`; a file with another question, or with a line that is
  // no sample of it, is kBadFile and stays as it is. A last line that was cut off is dropped. An
  // empty path keeps nothing.
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
