// SPDX-License-Identifier: Apache-2.0
// Branch and bound over the values before units: the largest norm of the Jacobian on a domain
// [pieces-5].
#pragma once

#include <functional>
#include <memory>
#include <queue>

#include "search/branching.h"
#include "search/jacobian_bounder.h"
#include "search/search_region.h"

namespace lipscope {

class PieceSearch {
 public:
  // Given a point of the domain where the Jacobian may be large: the best lower bound known.
  using TryPoint = std::function<double(const std::vector<double>&)>;

  // Borrows the network.
  PieceSearch(const LayeredNet& net, const NormDecomposition& parts, const SearchRegion& region,
              TryPoint try_point, double lower);

  // Bounds the roots; then splits until the upper bound is the lower one up to a ratio, nothing is
  // left to split, there are more parts than fit a gigabyte or two, or `stop` says so: then true.
  bool run(double ratio, const std::function<bool()>& stop);
  [[nodiscard]] double upper() const;
  // The largest norm at a point that was tried, not proved.
  [[nodiscard]] double seen() const { return seen_; }
  [[nodiscard]] std::size_t splits() const { return splits_; }
  [[nodiscard]] const CaseTree& tree() const { return tree_; }

 private:
  struct Open {
    double bound = 0;
    std::size_t node = 0;
    Index part = 0;
    Path path = {};
    std::vector<Split> splits = {};
    std::vector<float> state = {};
    std::vector<double> point = {};  // inside, as far as is known
    bool operator<(const Open& other) const { return bound < other.bound; }
  };

  // What one thread needs to bound a part.
  struct Worker {
    std::unique_ptr<JacobianBounder> bounder;
    std::unique_ptr<SearchRegion> region;
  };
  // A part with its bound, before the search knows of it.
  struct Bounded {
    Open open;
    bool empty = false;
    CaseTree::InfeasibilityProof proof;
    std::vector<double> multipliers;  // of its unstable units
    double norm_at_point = 0;         // of the Jacobian there; 0 for a point seen before
  };

  [[nodiscard]] static double size_of(const Open& open);
  void start();
  void prepare_workers(std::size_t count);
  [[nodiscard]] Bounded bounded(Worker& worker, Open open) const;
  // Keeps a part if there is more to say about it.
  void add(Bounded part);
  void split(const std::vector<Open>& parts);
  struct Trial {
    std::size_t part = 0;
    Split split;
    double score = 0;
  };
  // Both sides of each, one after the other.
  [[nodiscard]] std::vector<Bounded> bounded(const std::vector<Open>& parts,
                                             const std::vector<Trial>& trials);
  void set_score(const Open& open, const Bounded& below, const Bounded& above, Trial& trial);
  void close(double bound) { closed_ = std::max(closed_, bound); }
  void look_at(const std::vector<double>& point, double norm);
  [[nodiscard]] double good_enough_bound() const { return std::max(closed_, lower_ * ratio_); }
  [[nodiscard]] bool full() const;
  [[nodiscard]] std::vector<Split> splits_of(const Worker& worker, const Slopes& slopes) const;

  const LayeredNet& net_;
  NormDecomposition parts_;
  ComponentNet part_net_;
  std::vector<Worker> workers_;
  TryPoint try_point_;
  double lower_, seen_ = 0, closed_ = 0, ratio_ = 1;
  std::priority_queue<Open> open_;
  CaseTree tree_;
  Branching branching_;
  std::size_t splits_ = 0;
  double bytes_ = 0;  // of open parts and the tree, about
  int failed_proofs_ = 0;
};

// Multipliers of units without a single slope, in their order: what a node of a tree holds.
[[nodiscard]] std::vector<double> of_unstable_units(const Slopes& slopes,
                                                    const Multipliers& multipliers);

}  // namespace lipscope
