// SPDX-License-Identifier: Apache-2.0
// How far an input may move before a classifier's decision can change.
//
//   Certifier certifier(logits, {.norm = Norm(2)});
//   certifier.find_constants(std::chrono::seconds(10), context);
//   for (const Decision& d : certifier.decide(points, labels)) d.radius ...
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipscope/bound.h"

namespace lipscope {

// Upper bounds of the Lipschitz constants of the margins f_i - f_j, proved, one per pair i < j in
// the order (0,1), (0,2), ...
struct PairConstants {
  Index classes = 0;
  std::vector<Bound> upper;
  bool finished = true;  // more time would find none that is smaller
  [[nodiscard]] const Bound& at(Index i, Index j) const;
};

// What is known about one sample. A wrong or undecided prediction has radius 0.
struct Decision {
  Index predicted = 0;   // -1: nothing is known
  bool certain = false;  // the prediction is proved to have the largest logit
  double radius = 0;     // proved: every input closer than this has the same largest logit
  std::string method = "none";
  Index rival = -1;  // the class that stands in the way of a larger radius
  // Proved: some input at most this far away has another class. Nothing where none was found.
  std::optional<double> attack_radius = {};
};

// Bounds of how far logits computed in another arithmetic are off, for all inputs of a ball.
using LogitError =
    std::function<std::vector<double>(std::span<const double> center, double radius)>;

// By rival of the class `winner`: how much larger than theirs its real logit has to be, everywhere
// on the ball, for its result in another arithmetic to be the largest. Infinity: nothing suffices.
using MarginsNeeded =
    std::function<std::vector<double>(std::span<const double> center, double radius, Index winner)>;

// Float32, float16 or bfloat16; sums of products, pools and reductions may be kept in another one
// until they are complete.
struct InferenceFormat {
  ElementType values = ElementType::kFloat32, sums = ElementType::kFloat32;
  // Numbers below the normal ones may be taken for zero, as operands and as results. Without it
  // they are kept, as IEEE 754 has it.
  bool flush_to_zero = false;
};

// For a model run node by node in float32, float16 or bfloat16: inputs, constants, parameters and
// results of each operation rounded to nearest, sums in any order [robustness-6]. Borrows the
// graph, which is that of the file; `logits` is one of its values. Throws kUnsupported, with the
// node, for operators whose rounding is not known.
[[nodiscard]] LogitError inference_error(const Graph& graph, ValueId logits,
                                         const InferenceFormat& format, const Norm& norm);
// For decisions by the largest entry of the graph's first output. `squash` is the Softmax,
// LogSoftmax or Sigmoid that makes it from the logits, or null where it is the logits: computed
// numbers may be equal although the logits are not [robustness-10].
[[nodiscard]] MarginsNeeded inference_margins(const Graph& graph, const Node* squash,
                                              const InferenceFormat& format, const Norm& norm);

struct CertifyOptions {
  Norm norm = Norm(2);
  Index parts = 400;  // a local search may look at, per sample and radius
  std::uint64_t seed = 1;
  MarginsNeeded margins_needed = {};  // empty: real numbers
};

struct LogitTable;

// What constants are for: those that stand between these samples and radii come first. Without
// logits, and under a budget of work, all pairs of classes are alike.
struct ConstantsFor {
  std::shared_ptr<const LogitTable> logits = nullptr;
  std::span<const Index> labels = {};
  std::span<const double> radii = {};
};

// By linear bounds of the whole ball, or of parts of it, too.
enum class BallDepth { kWhole, kCases };

// Thread-safe once the constants are there.
class Certifier {
 public:
  // The first output of the graph are the logits, a vector of at least two; borrows the graph.
  Certifier(const Graph& graph, CertifyOptions options);
  ~Certifier();

  [[nodiscard]] Index classes() const;
  // Proved intervals of the logits, for what needs them several times. `points` holds the samples
  // one after another, each with all entries of the floating inputs. `stop`, asked now and then,
  // ends it early: nothing is known of the samples behind.
  [[nodiscard]] std::shared_ptr<const LogitTable> logits(
      std::span<const double> points, const std::function<bool()>& stop = {}) const;
  // Those of little work, for a run that may have time for nothing else; find_constants() goes on
  // from them.
  const PairConstants& find_cheap_constants(const RunContext& context);
  // About so much time by the clock of the context; infinity where a margin has no constant.
  const PairConstants& find_constants(std::chrono::duration<double> time, const RunContext& context,
                                      const ConstantsFor& purpose = {});
  [[nodiscard]] const PairConstants& constants() const;

  // Predictions, and radii by the constants; `labels` one number each.
  [[nodiscard]] std::vector<Decision> decide(std::span<const double> points,
                                             std::span<const Index> labels) const;
  [[nodiscard]] std::vector<Decision> decide(std::span<const double> points,
                                             std::span<const Index> labels,
                                             const LogitTable& logits) const;
  // Nearest inputs of another class that an attack finds, for the samples with a proved and right
  // prediction. `stop` ends it early, with what it has.
  void attack(std::span<const double> points, std::span<const Index> labels,
              std::span<Decision> decisions, const std::function<bool()>& stop) const;
  // Whether the class is proved to stay on the ball of this radius around one sample, which is then
  // the radius of the decision. What was not proved may still be true.
  [[nodiscard]] bool prove(std::span<const double> point, double radius, BallDepth depth,
                           Decision& decision, const std::function<bool()>& stop) const;
  // A larger radius around one sample, by bounds that hold there alone, below `most`. `stop` ends
  // it early.
  void improve(std::span<const double> point, Decision& decision, const std::function<bool()>& stop,
               double most = std::numeric_limits<double>::infinity()) const;
  // Why improve() can do little for this model; empty where it can.
  [[nodiscard]] const std::string& local_obstacle() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lipscope
