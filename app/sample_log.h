// SPDX-License-Identifier: Apache-2.0
// Finished samples in a file of JSON lines, so that an interrupted run can go on.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "base/json.h"
#include "lipscope/tensor.h"

namespace lipscope::app {

// May be told from several threads.
class SampleLog {
 public:
  // The first line of the file is `question`; one with another question is kBadFile. A last line
  // that was cut off is dropped. An empty path keeps nothing.
  SampleLog(const std::string& path, const Json& question);
  ~SampleLog();
  SampleLog(const SampleLog&) = delete;
  SampleLog& operator=(const SampleLog&) = delete;

  // What earlier runs found, by sample.
  [[nodiscard]] const std::map<Index, Json>& earlier() const { return earlier_; }
  // On disk when it returns. Throws kBadFile when it cannot be written.
  void add(const Json& sample);

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
  std::mutex mutex_;
  std::map<Index, Json> earlier_;
};

}  // namespace lipscope::app
