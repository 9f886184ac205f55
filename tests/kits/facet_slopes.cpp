// SPDX-License-Identifier: Apache-2.0
// Slopes, products with Jacobians, derivatives as graphs.
#include "ops/elementwise/elementwise.h"
#include "ops/facets/adjoint.h"
#include "ops/facets/box_product.h"
#include "tests/kits/facet_checks.h"

namespace lipscope::kits {
namespace {

constexpr double kRoundingSlack = 1e-10;  // of derivatives in doubles, relative to the largest

double largest_of(const Tensor& values) {
  double most = 1;
  for (Index i = 0; i < values.size(); ++i) most = std::max(most, std::fabs(values.at(i)));
  return most;
}

bool meets(const Interval& a, const Interval& b) { return !is_nan(intersect(a, b)); }

// One function of each entry: entries in the opposite order give results in the opposite order.
void expect_entry_by_entry(const FacetCase& c) {
  Tensor turned = c.built.inputs[0];
  std::ranges::reverse(turned.doubles());
  const Tensor y = evaluate(c.built.graph, c.built.inputs)[0];
  const Tensor z = evaluate(c.built.graph, std::span(&turned, 1))[0];
  if (!is_floating(y.type())) return;
  for (Index i = 0; i < y.size(); ++i) {
    const double a = y.at(i), b = z.at(y.size() - 1 - i);
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << "entry " << i;
  }
}

// What is claimed on an interval, at two points of it per entry. Zero tolerance: the exact values
// lie in the ranges of the points.
int check_slopes_on(const FacetCase& c, const Elementwise& curve, const Interval& x) {
  const auto slopes = curve.slopes(x);
  if (!slopes || is_nan(*slopes)) return 0;
  EXPECT_LE(slopes->lo, slopes->hi);
  std::vector<Box> whole = c.boxes(0);
  std::ranges::fill(whole[0].lower.doubles(), x.lo);
  std::ranges::fill(whole[0].upper.doubles(), x.hi);
  const std::vector<Tensor> a = c.sample(whole), b = c.sample(whole);
  const auto fa = c.op().range(c.at(a)), fb = c.op().range(c.at(b));
  if (!fa || !fb) return 0;
  const auto lines = curve.other_lines(whole[0]);
  int compared = 0;
  for (Index i = 0; i < a[0].size(); ++i) {
    const Interval ya = entry_of((*fa)[0], i), yb = entry_of((*fb)[0], i);
    if (!is_bounded(ya) || !is_bounded(yb)) continue;
    ++compared;
    const double p = a[0].at(i), q = b[0].at(i);
    if (p != q) {
      EXPECT_TRUE(meets(*slopes, (ya - yb) / (point(p) - point(q))))
          << "slopes [" << slopes->lo << ", " << slopes->hi << "] between " << p << " and " << q;
    }
    if (!lines) continue;
    const auto k = static_cast<std::size_t>(i);
    const auto line = [&](const AffineRows& rows) {
      return point(rows.weights[k]) * point(p) + point(rows.offsets[k]);
    };
    EXPECT_LE(line(lines->lower).lo, ya.hi) << "line below at " << p;
    EXPECT_GE(line(lines->upper).hi, ya.lo) << "line above at " << p;
  }
  return compared;
}

// The derivative at the example is one of the slopes next to it.
void expect_derivative(const FacetCase& c, const Elementwise& curve) {
  if (!c.op().differentiable()) return;
  const Trace trace(c.built.graph, c.built.inputs);
  Tensor ones = Tensor::zeros(ElementType::kFloat64, c.in[0].shape());
  std::ranges::fill(ones.doubles(), 1.0);
  const Tensor pushed = trace.jvp(std::span(&ones, 1))[0];
  for (Index i = 0; i < pushed.size(); ++i) {
    const auto slopes = curve.slopes(point(c.in[0].at(i)));
    if (!slopes || is_nan(*slopes) || !std::isfinite(pushed.at(i))) continue;
    const double slack = kRoundingSlack * (1 + std::fabs(pushed.at(i)));
    EXPECT_GE(pushed.at(i), slopes->lo - slack);
    EXPECT_LE(pushed.at(i), slopes->hi + slack);
  }
}

void expect_pieces(const FacetCase& c, const Elementwise& curve) {
  const auto made = curve.linear_pieces();
  if (!made) return;
  EXPECT_EQ(made->pieces.size(), made->kinks.size() + 1);
  const auto values = c.op().range(c.at(c.built.inputs));
  for (Index i = 0; values && i < c.in[0].size(); ++i) {
    const double x = c.in[0].at(i);
    for (std::size_t k = 0; k < made->pieces.size(); ++k) {
      const bool above = k == 0 || made->kinks[k - 1].hi < x;
      const bool below = k == made->kinks.size() || x < made->kinks[k].lo;
      const LinearPiece& piece = made->pieces[k];
      if (above && below) {
        EXPECT_TRUE(meets(point(piece.slope) * point(x) + piece.offset, entry_of((*values)[0], i)));
      }
    }
  }
}

// J t for output 0 and input 0, or J't.
Tensor times_jacobian(const FacetCase& c, const std::vector<Tensor>& x, const Tensor& t,
                      bool transposed) {
  const Trace trace(c.built.graph, x);
  const auto moving = static_cast<std::size_t>(c.source[0]);
  if (!transposed) {
    std::vector<Tensor> tangents(x.size());
    tangents[moving] = t;
    return trace.jvp(tangents)[0];
  }
  std::vector<Tensor> weights(c.node().outputs.size());
  weights[0] = t;
  return trace.vjp(weights)[moving];
}

int check_products_on(const FacetCase& c, double width, bool transposed) {
  const Shape& out = c.output(0).shape;
  const Shape& from = transposed ? out : c.in[0].shape();
  const Shape& to = transposed ? c.in[0].shape() : out;
  const double spread = uniform(c.rng) < 0.5 ? 0 : 0.5;
  const Tensor t = random_tensor(c.rng, from, -1, 1);
  std::vector<Interval> given, product(static_cast<std::size_t>(element_count(to)));
  for (const double e : t.doubles()) given.push_back({e - spread, e + spread});
  const std::vector<Box> boxes = c.boxes(width);
  if (!c.op().box_product()->enclose_product(boxes, given, transposed, product)) return 0;
  int compared = 0;
  for (int s = 0; s < 20; ++s) {
    Tensor member = t.cast(ElementType::kFloat64);
    for (std::size_t i = 0; i < given.size(); ++i) {
      member.doubles()[i] = std::clamp(given[i].lo + uniform(c.rng) * (given[i].hi - given[i].lo),
                                       given[i].lo, given[i].hi);
    }
    const Tensor seen = times_jacobian(c, c.sample(boxes), member, transposed);
    const double slack = kRoundingSlack * largest_of(seen);
    for (Index i = 0; i < seen.size(); ++i) {
      if (!std::isfinite(seen.at(i))) continue;
      const Interval& claimed = product[static_cast<std::size_t>(i)];
      EXPECT_GE(seen.at(i), claimed.lo - slack) << "width " << width << " entry " << i;
      EXPECT_LE(seen.at(i), claimed.hi + slack) << "width " << width << " entry " << i;
      ++compared;
    }
  }
  return compared;
}

double length_of(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (Index i = 0; i < a.size(); ++i) sum = std::hypot(sum, a.at(i) - b.at(i));
  return sum;
}

// How much the derivative changes within a radius of a point of the box.
void expect_change(const FacetCase& c, double width, double radius) {
  const std::vector<Box> boxes = c.boxes(width);
  const double bound = c.op().box_product()->derivative_change_up(boxes, radius);
  EXPECT_GE(bound, 0);
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, c.in[0].shape());
  const auto moving = static_cast<std::size_t>(c.source[0]);
  for (int s = 0; s < 20 && bound < kInf; ++s) {
    const std::vector<Tensor> y = c.sample(boxes);
    std::vector<Tensor> x = y;
    const Tensor step = random_tensor(c.rng, c.in[0].shape(), -1, 1);
    const double size = std::max(length_of(step, zero), 1e-300);
    for (std::size_t i = 0; i < step.doubles().size(); ++i)
      x[moving].doubles()[i] += 0.999 * radius * step.doubles()[i] / size;
    const Tensor along = random_tensor(c.rng, c.in[0].shape(), -1, 1).cast(ElementType::kFloat64);
    const Tensor here = times_jacobian(c, x, along, false);
    const Tensor there = times_jacobian(c, y, along, false);
    const double slack = kRoundingSlack * (largest_of(here) + largest_of(there));
    EXPECT_LE(length_of(here, there), bound * length_of(along, zero) + slack);
  }
}

}  // namespace

int check_elementwise(const FacetCase& c) {
  const Elementwise* curve = c.op().elementwise();
  if (curve == nullptr || !c.moves(0) || c.in[0].size() == 0) return 0;
  expect_entry_by_entry(c);
  expect_derivative(c, *curve);
  expect_pieces(c, *curve);
  int compared = 0;
  for (int s = 0; s < 60; ++s) {
    const double middle = c.in[0].at(static_cast<Index>(c.rng() % c.in[0].doubles().size()));
    const double width = std::pow(10, 7 * uniform(c.rng) - 5);
    const double low = middle - width * uniform(c.rng);
    compared += check_slopes_on(c, *curve, {low, low + width});
  }
  return compared;
}

int check_box_product(const FacetCase& c) {
  if (c.op().box_product() == nullptr || !c.moves(0) || !is_floating(c.output(0).type)) return 0;
  int compared = 0;
  for (const double width : {0.0, 1e-3, 0.3, 3.0}) {
    for (const bool transposed : {false, true}) compared += check_products_on(c, width, transposed);
    for (const double radius : {1e-3, 0.5}) expect_change(c, width, radius);
  }
  return compared;
}

int check_adjoint(const FacetCase& c) {
  const GraphAdjoint* told = c.op().graph_adjoint();
  if (told == nullptr || !is_floating(c.output(0).type)) return 0;
  int compared = 0;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    if (!c.moves(k)) continue;
    GraphBuilder builder;
    std::vector<ValueId> inputs;
    std::vector<Tensor> given;
    for (std::size_t j = 0; j < c.in.size(); ++j) {
      const std::string name = "x" + std::to_string(j);
      if (c.source[j] < 0) {
        inputs.push_back(builder.constant(name, c.in[j]));
      } else {
        inputs.push_back(builder.input(name, {c.in[j].type(), c.in[j].shape()}));
        given.push_back(c.in[j]);
      }
    }
    const ValueId output = builder.add(c.node().op, inputs, "node")[0];
    const Tensor g = random_tensor(c.rng, c.output(0).shape, -1, 1).cast(ElementType::kFloat64);
    const ValueId gradient = builder.input("g", {g.type(), g.shape()});
    given.push_back(g);
    const auto found = told->add_adjoint({builder, inputs, output, gradient, k});
    if (!found) continue;
    const Tensor pulled = evaluate(builder.finish({*found}), given)[0];
    std::vector<Tensor> weights(c.node().outputs.size());
    weights[0] = g;
    const Tensor expected =
        Trace(c.built.graph, c.built.inputs).vjp(weights)[static_cast<std::size_t>(c.source[k])];
    EXPECT_EQ(pulled.shape(), c.in[k].shape());
    for (Index i = 0; i < pulled.size(); ++i, ++compared)
      EXPECT_NEAR(pulled.at(i), expected.at(i), 1e-9 * largest_of(expected)) << "input " << k;
  }
  return compared;
}

}  // namespace lipscope::kits
