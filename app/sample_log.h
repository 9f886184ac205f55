// SPDX-License-Identifier: Apache-2.0
// What is known of samples in a file of JSON lines, so that a run that was cut short can go on.
#pragma once

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "lipscope/sample_rounds.h"

namespace lipscope::app {

// The line of a sample; `question` as text.
[[nodiscard]] std::string sample_line(std::string_view question, const std::string& sample,
                                      const SampleWork& work);

struct EarlierSamples {
  std::map<std::string, SampleWork> samples;  // by digest of the sample
  std::string text;                           // the file with the last line of each sample alone
};

// The samples in the text of a file, called `name`: first the question, then lines, the last one of
// a sample being what counts. A last line that was cut off is left out. kBadFile for another
// question and for a line that no run with this question can have written: each carries a checksum
// of itself and the question. Rivals are below `classes`.
[[nodiscard]] EarlierSamples read_samples(std::string_view text, std::string_view name,
                                          const Json& question, Index classes);

// May be told from several threads.
class SampleLog {
 public:
  // A file that read_samples refuses stays as it is. An empty path keeps nothing.
  SampleLog(const std::string& path, const Json& question, Index classes);
  ~SampleLog();
  SampleLog(const SampleLog&) = delete;
  SampleLog& operator=(const SampleLog&) = delete;

  // What earlier runs found, by digest of the sample; predictions are not kept.
  [[nodiscard]] const std::map<std::string, SampleWork>& earlier() const { return earlier_; }
  // On disk when it returns. Throws kBadFile when it cannot be written.
  void add(const std::string& sample, const SampleWork& work);

 private:
  std::string path_, question_;
  std::FILE* file_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, SampleWork> earlier_;
};

}  // namespace lipscope::app
