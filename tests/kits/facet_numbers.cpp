// SPDX-License-Identifier: Apache-2.0
// Wide and rational numbers, and rounding as machines do it.
#include <limits>

#include "graph/exact_map.h"
#include "lipscope/error.h"
#include "ops/facets/machine_map.h"
#include "ops/facets/wide_map.h"
#include "tests/kits/facet_checks.h"
#include "tests/support/emulator.h"

namespace lipscope::kits {
namespace {

using testing_support::Habits;
using testing_support::Reals;

ExactTensor rationals(const Box& box) {
  ExactTensor entries;
  for (Index i = 0; i < box.lower.size(); ++i) {
    if (is_floating(box.lower.type())) {
      entries.emplace_back(entry_of(box, i));
    } else if (const Index x = box.lower.ints()[static_cast<std::size_t>(i)];
               box.lower.type() == ElementType::kUInt64) {
      entries.emplace_back(Rational(BigInteger::from_unsigned(static_cast<std::uint64_t>(x))));
    } else {
      entries.emplace_back(Rational(x));
    }
  }
  return entries;
}

// Empty when the operator does not tell.
std::vector<ExactTensor> push_rationals(const FacetCase& c, const std::vector<Box>& boxes) {
  std::vector<ExactTensor> in, out(c.node().outputs.size());
  for (const Box& box : boxes) in.push_back(rationals(box));
  std::vector<const ExactTensor*> views;
  for (const ExactTensor& x : in) views.push_back(&x);
  if (!c.op().exact_map()->push_exact(views, out)) out.clear();
  return out;
}

// The number eval finds, and that of the facet.
void expect_same_number(const Tensor& plain, Index i, const RationalInterval& exact,
                        const Box* range) {
  const double y = plain.at(i);
  const Interval hull = exact.hull();
  if (is_floating(plain.type())) {
    const double slack = 1e-12 * (1 + std::fabs(y));
    EXPECT_GE(y, hull.lo - slack);
    EXPECT_LE(y, hull.hi + slack);
    if (range != nullptr) {
      EXPECT_FALSE(is_nan(intersect(hull, entry_of(*range, i))));
    }
  } else if (const Rational* number = exact.number()) {
    EXPECT_TRUE(number->is_integer());
    EXPECT_EQ(wrap_integer(plain.type(), static_cast<Index>(number->floor().low_bits())),
              plain.ints()[static_cast<std::size_t>(i)]);
  } else {
    EXPECT_GE(y, hull.lo);
    EXPECT_LE(y, hull.hi);
  }
}

// A machine's bounds for inputs in boxes; infinite where results may leave the format.
Reals claimed_errors(const FacetCase& c, const MachineStep& step, const Machine& machine,
                     const std::vector<Box>& boxes, const Box& real) {
  std::vector<Reals> errors(boxes.size());
  std::vector<ComputedView> views(boxes.size());
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    if (!is_floating(c.in[k].type())) continue;
    for (Index i = 0; i < boxes[k].lower.size(); ++i)
      errors[k].push_back(machine.stored(entry_of(boxes[k], i)).error);
    views[k] = {boxes[k].lower.doubles(), boxes[k].upper.doubles(), errors[k]};
  }
  Reals found(real.lower.doubles().size(), kInf);
  step.run(views, {real.lower.doubles(), real.upper.doubles(), {}}, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Computed here{entry_of(real, static_cast<Index>(i)), found[i]};
    if (!(here.size() <= machine.values().most)) found[i] = kInf;
  }
  return found;
}

int check_format(const FacetCase& c, const InferenceFormat& format, double width) {
  const Machine machine(NumberFormat::of(format.values), NumberFormat::of(format.sums),
                        format.flush_to_zero);
  const auto step = c.op().machine_map()->machine_step(machine, 0);
  const std::vector<Box> boxes = c.boxes(width);
  const auto real = c.op().range(boxes);
  if (step == nullptr || !real) return 0;
  const Reals errors = claimed_errors(c, *step, machine, boxes, (*real)[0]);
  const std::string& made = c.built.graph.value(c.node().outputs[0]).name;
  const testing_support::EmulatedGraph net{c.built.graph, {{made, c.op_case.attributes}}};
  // Fewer ways where each takes long.
  Index entries = element_count(c.output(0).shape);
  for (const Tensor& x : c.in) entries = std::max(entries, x.size());
  const std::vector<Habits> all = testing_support::all_habits(format);
  const std::size_t stride = entries > 300 ? 11 : 1;
  int compared = 0;
  for (std::size_t h = 0; h < all.size(); h += stride) {
    const Habits& habits = all[h];
    const std::vector<Tensor> x = c.sample(boxes);
    Reals flat;
    for (const Tensor& part : x)
      flat.insert(flat.end(), part.doubles().begin(), part.doubles().end());
    const Reals seen = testing_support::emulate(net, flat, habits);
    const auto there = c.op().range(c.at(x));
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (!(errors[i] < kInf)) continue;
      const Interval exact = entry_of((*there)[0], static_cast<Index>(i));
      EXPECT_GE(seen[i], sub_down(exact.lo, errors[i])) << "way " << habits.way;
      EXPECT_LE(seen[i], add_up(exact.hi, errors[i])) << "way " << habits.way;
      ++compared;
    }
  }
  return compared;
}

}  // namespace

// What wide numbers and intervals enclose they have in common, and wide numbers know it to about
// 200 bits.
int check_wide(const FacetCase& c) {
  const WideMap* map = c.op().wide_map();
  if (map == nullptr || !c.is_real()) return 0;
  std::vector<Tensor> directions;
  for (const Tensor& x : c.built.inputs) directions.push_back(random_tensor(c.rng, x.shape()));
  std::vector<WideTensor> given(c.in.size()), out(c.node().outputs.size());
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    for (Index e = 0; e < c.in[k].size(); ++e) {
      given[k].value.emplace_back(c.in[k].at(e));
      if (c.source[k] >= 0)
        given[k].tangent.emplace_back(directions[static_cast<std::size_t>(c.source[k])].at(e));
    }
  }
  std::vector<const WideTensor*> in;
  for (const WideTensor& x : given) in.push_back(&x);
  if (!map->push_wide(in, out)) return 0;
  const auto ranges = c.op().range(c.boxes(0));
  const Trace trace(c.built.graph, c.built.inputs);
  const std::vector<Tensor> pushed = trace.jvp(directions);
  int compared = 0;
  for (std::size_t o = 0; o < out.size(); ++o) {
    const Tensor& plain = trace.value(c.node().outputs[o]);
    if (!is_floating(plain.type())) continue;
    EXPECT_EQ(std::ssize(out[o].value), plain.size());
    for (Index e = 0; e < plain.size(); ++e) {
      const auto i = static_cast<std::size_t>(e);
      const Wide value = out[o].value[i], slope = out[o].at(i).tangent;
      if (!std::isfinite(plain.at(e)) || !value.known()) continue;
      // Weights of Resize that are no doubles are known between two of them.
      EXPECT_LE(value.off(), c.op().name() == "Resize" ? 0x1p-48 : 0x1p-180);
      EXPECT_NEAR(value.near(), plain.at(e), 1e-9 * (1 + std::fabs(plain.at(e))));
      if (ranges) {
        EXPECT_FALSE(is_nan(intersect(hull(value), entry_of((*ranges)[o], e)))) << value.near();
      }
      const double at = pushed[o].at(e);
      EXPECT_NEAR(slope.near(), at, 1e-8 * (1 + std::fabs(at)));
      ++compared;
    }
  }
  return compared;
}

// At a point the numbers of eval; on boxes they are held.
int check_exact(const FacetCase& c) {
  if (c.op().exact_map() == nullptr) return 0;
  const std::vector<Tensor> plain = evaluate(c.built.graph, c.built.inputs);
  const std::vector<Box> at = c.boxes(0);
  const std::vector<ExactTensor> exact = push_rationals(c, at),
                                 wide = push_rationals(c, c.boxes(0.3));
  const auto ranges = c.op().range(at);
  int compared = 0;
  for (std::size_t o = 0; o < exact.size(); ++o) {
    EXPECT_EQ(std::ssize(exact[o]), plain[o].size());
    for (Index e = 0; e < plain[o].size(); ++e) {
      const auto i = static_cast<std::size_t>(e);
      const RationalInterval& number = exact[o][i];
      if (!number.known() || !std::isfinite(plain[o].at(e))) continue;
      expect_same_number(plain[o], e, number, ranges ? &(*ranges)[o] : nullptr);
      if (!wide.empty() && wide[o][i].known()) {
        EXPECT_TRUE(wide[o][i].lower() <= number.lower() && number.upper() <= wide[o][i].upper());
      }
      ++compared;
    }
  }
  return compared;
}

// The emulator broadcasts as numpy does and gives output 0 of operators that have no other, unless
// they copy.
int check_rounding(const FacetCase& c) {
  if (c.op().machine_map() == nullptr || !c.is_real() || !is_floating(c.output(0).type)) return 0;
  if (element_count(c.output(0).shape) == 0 || c.op_case.attributes.contains("broadcast")) return 0;
  if (c.node().outputs.size() > 1 && c.op().index_map() == nullptr) return 0;
  using enum ElementType;
  int compared = 0;
  for (const InferenceFormat& format :
       {InferenceFormat{kFloat32, kFloat32, false}, InferenceFormat{kFloat16, kFloat32, true},
        InferenceFormat{kFloat16, kFloat16, false}, InferenceFormat{kBFloat16, kFloat32, false}}) {
    for (const double width : {0.0, 0.1}) compared += check_format(c, format, width);
  }
  return compared;
}

}  // namespace lipscope::kits
