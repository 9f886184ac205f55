// SPDX-License-Identifier: Apache-2.0
#include "tests/support/emulator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "graph/run_node.h"
#include "linalg/conv/conv_places.h"
#include "lipscope/error.h"
#include "ops/elementwise/activations.h"
#include "ops/index/index_map.h"
#include "ops/linear/multilinear.h"
#include "ops/windows/conv.h"

namespace lipscope::testing_support {
namespace {

using Order = Habits::Order;

std::size_t place(Index i) { return static_cast<std::size_t>(i); }

// s is a sum rounded to double, off by `error`: moved to an odd neighbour where it is not exact, so
// that rounding it again is rounding the sum once.
double to_odd(double s, double error) {
  if (error == 0 || !std::isfinite(s) || (std::bit_cast<std::uint64_t>(s) & 1) != 0) return s;
  return std::nextafter(s, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

double exact_sum(double a, double b) {
  const double s = a + b;
  if (!std::isfinite(s)) return s;
  const double t = s - a;
  return to_odd(s, (a - (s - t)) + (b - t));
}

struct Pair {
  double a, b;
};

// Everything of one run.
class Emulation {
 public:
  Emulation(const EmulatedGraph& net, const Habits& habits)
      : net_(net),
        habits_(habits),
        values_(habits.format.values, habits.flushes),
        sums_(habits.format.sums, habits.flushes),
        rng_(habits.seed) {}

  Reals run(const Reals& x) {
    const Graph& graph = net_.graph;
    std::vector<Reals> made(graph.values().size());
    for (std::size_t v = 0; v < made.size(); ++v) {
      if (graph.values()[v].constant) {
        made[v] = constant(*graph.values()[v].constant, graph.values()[v].name);
      }
    }
    std::size_t next = 0;
    for (const ValueId id : graph.inputs()) {
      for (Index i = 0; i < element_count(graph.value(id).type.shape); ++i)
        made[id.index].push_back(values_.round(x[next++]));
    }
    for (const Node& node : graph.nodes()) {
      std::vector<const Reals*> in;
      std::vector<Shape> shapes;
      for (const ValueId id : node.inputs) {
        in.push_back(&made[id.index]);
        shapes.push_back(graph.value(id).type.shape);
      }
      const Value& out = graph.value(node.outputs[0]);
      made[node.outputs[0].index] = apply(*node.op, out.name, out.type, in, shapes);
    }
    return made[graph.outputs()[0].index];
  }

 private:
  Reals constant(const Constant& value, const std::string& name) {
    Reals found;
    if (!is_floating(value.type())) return found;
    const Folded* folded = value.folded();
    const bool computed =
        folded != nullptr && std::ranges::any_of(folded->inputs, [](const auto& input) {
          return is_floating(input->type());
        });
    if (!computed) {
      for (Index i = 0; i < value.size(); ++i)
        found.push_back(values_.round(value.approximate().at(i)));
      return found;
    }
    std::vector<Reals> made;
    std::vector<Shape> shapes;
    for (const auto& input : folded->inputs) {
      made.push_back(constant(*input, name));
      shapes.push_back(input->shape());
    }
    std::vector<const Reals*> in;
    for (const Reals& m : made) in.push_back(&m);
    return apply(*folded->op, name, {value.type(), value.shape()}, in, shapes);
  }

  double number(const std::string& value, const char* name, double none) const {
    const auto found = net_.attributes.find(value);
    if (found == net_.attributes.end()) return none;
    const auto entry = found->second.find(name);
    if (entry == found->second.end()) return none;
    return std::get<double>(entry->second);
  }
  // An attribute is rounded to the format, or kept as it is.
  double parameter(double x) const { return habits_.way % 2 == 0 ? values_.round(x) : x; }

  double add_up_terms(const EmulatedFormat& format, Reals terms) {
    if (terms.empty()) return 0;
    if (habits_.order == Order::kBackward) std::ranges::reverse(terms);
    if (habits_.order == Order::kLargestFirst)
      std::ranges::sort(terms, std::greater{}, [](double t) { return std::fabs(t); });
    if (habits_.order == Order::kPairs || habits_.order == Order::kTree) {
      while (terms.size() > 1) {
        if (habits_.order == Order::kTree) std::ranges::shuffle(terms, rng_);
        Reals next;
        for (std::size_t i = 0; i + 1 < terms.size(); i += 2)
          next.push_back(format.add(terms[i], terms[i + 1]));
        if (terms.size() % 2 == 1) next.push_back(terms.back());
        terms = next;
      }
      return terms[0];
    }
    const std::size_t block = habits_.order == Order::kBlocks ? 5 : terms.size();
    double whole = 0;
    for (std::size_t from = 0; from < terms.size(); from += block) {
      double part = terms[from];
      for (std::size_t i = from + 1; i < std::min(terms.size(), from + block); ++i)
        part = format.add(part, terms[i]);
      whole = from == 0 ? part : format.add(whole, part);
    }
    return whole;
  }

  // factor * sum of products + offset, as a matrix product has it.
  double dot(std::vector<Pair> pairs, double factor, const double* offset) {
    const int way = habits_.way / 2 % 5;
    const bool scaled = factor != 1;
    for (Pair& p : pairs) {
      if (scaled && way == 2) p.a = values_.mul(factor, p.a);
      if (scaled && way == 3) p.b = values_.mul(factor, p.b);
      p = {sums_.round(p.a), sums_.round(p.b)};
    }
    const bool inside = offset != nullptr && habits_.way % 3 == 0 && (!scaled || way >= 2);
    double sum = 0;
    if (habits_.fused && habits_.order <= Order::kBackward && !(scaled && way == 4)) {
      if (habits_.order == Order::kBackward) std::ranges::reverse(pairs);
      if (inside) sum = sums_.round(*offset);
      for (const Pair& p : pairs) sum = sums_.fma(p.a, p.b, sum);
    } else {
      Reals terms;
      if (inside) terms.push_back(sums_.round(*offset));
      for (const Pair& p : pairs) {
        const double product = sums_.mul(p.a, p.b);
        terms.push_back(scaled && way == 4 ? sums_.mul(sums_.round(factor), product) : product);
      }
      sum = add_up_terms(sums_, terms);
    }
    if (scaled && way == 0) sum = sums_.mul(sums_.round(factor), sum);
    double result = values_.round(sum);
    if (scaled && way == 1) result = values_.mul(factor, result);
    if (offset != nullptr && !inside) result = values_.add(result, *offset);
    return result;
  }

  Reals multilinear(const Multilinear& form, const std::vector<const Reals*>& in) {
    const auto rows = place(element_count(form.out.shape));
    std::vector<std::vector<Pair>> pairs(rows);
    Reals offsets(rows);
    double factor = 1, share = 1;
    bool offset = false;
    for (const Multilinear::Term& term : form.terms) {
      if (term.inputs.size() == 2) {
        factor = term.coefficient == 1 ? 1 : parameter(term.coefficient);
        for_each_product(form, term, [&](Index row, std::span<const Index> at) {
          const std::size_t a = term.inputs[0], b = term.inputs[1];
          pairs[place(row)].push_back({(*in[a])[place(at[a])], (*in[b])[place(at[b])]});
        });
      } else {
        offset = true;
        share = term.coefficient == 1 ? 1 : parameter(term.coefficient);
        for_each_product(form, term, [&](Index row, std::span<const Index> at) {
          const double c = (*in[term.inputs[0]])[place(at[term.inputs[0]])];
          offsets[place(row)] = share == 1 ? c : values_.mul(share, c);
        });
      }
    }
    Reals out;
    for (std::size_t i = 0; i < rows; ++i)
      out.push_back(dot(std::move(pairs[i]), factor, offset ? &offsets[i] : nullptr));
    return out;
  }

  Reals convolution(const ConvForm& form, const std::vector<const Reals*>& in) {
    const ConvShape& s = form.shape;
    const Index positions = form.transposed ? s.input_size() : s.output_size();
    const Index channels = form.transposed ? s.in_channels : s.out_channels;
    const Index outputs = s.out_channels * s.output_size(), inputs = s.in_channels * s.input_size();
    std::vector<std::vector<Pair>> pairs(place(s.batch * positions * channels));
    for (Index n = 0; n < s.batch; ++n) {
      for_each_conv_place(s, [&](Index output, Index input, Index weight) {
        const Index o = n * outputs + output, i = n * inputs + input;
        pairs[place(form.transposed ? i : o)].push_back(
            {(*in[0])[place(form.transposed ? o : i)], (*in[1])[place(weight)]});
      });
    }
    Reals out;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const double* bias =
          form.has_bias ? &(*in[2])[i / place(positions) % place(channels)] : nullptr;
      out.push_back(dot(std::move(pairs[i]), 1, bias));
    }
    return out;
  }

  // Sums and means of entries, by what the matrix of the operator says.
  Reals entry_sums(const Op& op, const std::vector<const Reals*>& in,
                   const std::vector<Shape>& shapes, std::size_t rows, bool in_sums) {
    std::vector<Box> boxes;
    for (const Shape& shape : shapes) {
      const Tensor zero = Tensor::zeros(ElementType::kFloat64, shape);
      boxes.push_back({zero, zero});
    }
    std::vector<Reals> terms(rows);
    Reals counts(rows, 1);
    for (std::size_t k = 0; k < in.size(); ++k) {
      (void)op.matrix({.in = boxes, .wrt = static_cast<Index>(k), .output = 0},
                      [&](Index row, Index column, double low, double) {
                        terms[place(row)].push_back((*in[k])[place(column)]);
                        counts[place(row)] = std::round(1 / low);
                      });
    }
    Reals out;
    const EmulatedFormat& format = in_sums ? sums_ : values_;
    for (std::size_t i = 0; i < rows; ++i) {
      const double n = counts[i];
      for (double& t : terms[i]) {
        if (n != 1 && habits_.way % 4 == 2) t = values_.mul(t, values_.round(1 / n));
        t = format.round(t);
      }
      double sum = add_up_terms(format, terms[i]);
      if (n != 1 && habits_.way % 4 == 0) sum = format.div(sum, format.round(n));
      sum = values_.round(sum);
      if (n != 1 && habits_.way % 4 == 1) sum = values_.div(sum, values_.round(n));
      if (n != 1 && habits_.way % 4 == 3) sum = values_.mul(sum, values_.round(1 / n));
      out.push_back(sum);
    }
    return out;
  }

  Reals batch_norm(const std::vector<const Reals*>& in, const Shape& shape, double epsilon) {
    const std::size_t channels = in[1]->size();
    const std::size_t inner = in[0]->size() / channels / place(shape[0]);
    Reals out;
    for (std::size_t i = 0; i < in[0]->size(); ++i) {
      const std::size_t c = i / inner % channels;
      out.push_back(normalised((*in[0])[i], (*in[1])[c], (*in[2])[c], (*in[3])[c], (*in[4])[c],
                               parameter(epsilon)));
    }
    return out;
  }
  double normalised(double x, double scale, double bias, double mean, double variance,
                    double epsilon) const {
    const EmulatedFormat& f = values_;
    const double deviation = f.sqrt(f.add(variance, epsilon)), inverse = f.div(1, deviation);
    const double s = f.div(scale, deviation), centred = f.add(x, -mean);
    switch (habits_.way % 7) {
      case 0: return f.add(f.mul(x, s), f.add(bias, -f.mul(mean, s)));
      case 1: return f.add(f.mul(f.div(centred, deviation), scale), bias);
      case 2: return f.add(f.div(f.mul(centred, scale), deviation), bias);
      case 3: return f.add(f.mul(f.mul(centred, inverse), scale), bias);
      case 4: return f.fma(centred, f.mul(scale, inverse), bias);
      case 5: return f.fma(x, s, f.fma(-mean, s, bias));
      default: return f.add(f.mul(centred, s), bias);
    }
  }

  Reals copied(const IndexMap& map, const Reals& x) const {
    Reals out;
    for (Index i = 0; i < map.rows(); ++i)
      out.push_back(values_.round(map.constant_at(i / map.blocks().inner % map.block_rows())));
    map.for_each_entry(
        [&](Index row, Index from, const Interval&) { out[place(row)] = x[place(from)]; });
    return out;
  }

  // A function of the library, a little wrong.
  double library(double y) const {
    return values_.round(y * (1 + ((habits_.way % 3) - 1) * 0x1p-24));
  }

  double function(const std::string& op, const std::string& name, double x) const {
    const EmulatedFormat& f = values_;
    if (std::isnan(x)) return x;
    if (op == "Relu") return std::max(x, 0.0);
    if (op == "Abs") return std::fabs(x);
    if (op == "Neg") return -x;
    if (op == "Sqrt") return f.sqrt(x);
    if (op == "Reciprocal") return f.div(1, x);
    if (op == "Sigmoid") return library(1 / (1 + std::exp(-x)));
    if (op == "Tanh") return library(std::tanh(x));
    if (op == "LeakyRelu") {
      const double alpha = parameter(number(name, "alpha", 0.01));
      return x < 0 ? f.mul(alpha, x) : x;
    }
    if (op == "HardSigmoid") {
      const double alpha = parameter(number(name, "alpha", 0.2));
      const double beta = parameter(number(name, "beta", 0.5));
      const double line = habits_.fused ? f.fma(alpha, x, beta) : f.add(f.mul(alpha, x), beta);
      return std::min(std::max(line, 0.0), 1.0);
    }
    if (op == "Elu") {
      const double alpha = parameter(number(name, "alpha", 1));
      if (x >= 0) return x;
      const double power = habits_.fused ? library(std::expm1(x)) : f.add(library(std::exp(x)), -1);
      return f.mul(alpha, power);
    }
    throw Error(ErrorCode::kUnsupported, "no emulation of " + op);
  }

  double combination(const std::string& op, double a, double b) const {
    if (op == "Add") return values_.add(a, b);
    if (op == "Sub") return values_.add(a, -b);
    if (op == "Mul") return values_.mul(a, b);
    return habits_.way % 2 == 0 ? values_.div(a, b) : values_.mul(a, values_.div(1, b));
  }

  Reals broadcast(const std::string& op, const Reals& a, const Reals& b, const Shape& sa,
                  const Shape& sb, const Shape& out) const {
    const auto from = [&](const Shape& shape, Index flat) {
      Index at = 0, step = 1;
      for (std::size_t back = 1; back <= out.size(); ++back) {
        const Index n = out[out.size() - back], i = flat % n;
        flat /= n;
        if (back > shape.size()) continue;
        const Index own = shape[shape.size() - back];
        if (own != 1) at += i * step;
        step *= own;
      }
      return place(at);
    };
    Reals made;
    for (Index i = 0; i < element_count(out); ++i)
      made.push_back(combination(op, a[from(sa, i)], b[from(sb, i)]));
    return made;
  }

  Reals softmax(const Reals& z, bool logarithm) {
    const double most = *std::ranges::max_element(z);
    Reals powers, out;
    for (const double x : z) powers.push_back(library(std::exp(values_.add(x, -most))));
    Reals terms;
    for (const double p : powers) terms.push_back(sums_.round(p));
    const double sum = values_.round(add_up_terms(sums_, terms));
    const double log_sum = library(std::log(sum));
    for (std::size_t i = 0; i < z.size(); ++i) {
      if (logarithm) {
        out.push_back(habits_.way % 2 == 0 ? values_.add(values_.add(z[i], -most), -log_sum)
                                           : values_.add(z[i], -values_.add(most, log_sum)));
      } else {
        out.push_back(habits_.way % 2 == 0 ? values_.div(powers[i], sum)
                                           : values_.mul(powers[i], values_.div(1, sum)));
      }
    }
    return out;
  }

  Reals apply(const Op& op, const std::string& value, const ValueType& type,
              const std::vector<const Reals*>& in, const std::vector<Shape>& shapes) {
    const std::string name(op.name());
    const auto size = place(element_count(type.shape));
    if (const Multilinear* form = op.multilinear()) return multilinear(*form, in);
    if (const ConvForm* form = op.convolution()) return convolution(*form, in);
    if (const IndexMapOp* copies = op.index_map();
        copies != nullptr && !copies->outputs()[0].map.has_weights())
      return copied(copies->outputs()[0].map, *in[0]);
    if (name == "Add" || name == "Sub" || name == "Mul" || name == "Div")
      return broadcast(name, *in[0], *in[1], shapes[0], shapes[1], type.shape);
    if (name == "BatchNormalization")
      return batch_norm(in, shapes[0], number(value, "epsilon", 1e-5));
    if (name == "Softmax" || name == "LogSoftmax") return softmax(*in[0], name == "LogSoftmax");
    if (name == "Sum" || name == "Mean") return entry_sums(op, in, shapes, size, false);
    if (name == "AveragePool" || name == "GlobalAveragePool" || name == "ReduceMean" ||
        name == "ReduceSum")
      return entry_sums(op, in, shapes, size, true);
    static const char* const kExact[] = {"Concat", "MaxPool", "GlobalMaxPool",
                                         "Max",    "Min",     "Cast"};
    Reals out;
    if (std::ranges::find(kExact, name) != std::end(kExact)) {
      std::vector<Tensor> tensors;
      for (std::size_t k = 0; k < in.size(); ++k)
        tensors.emplace_back(ElementType::kFloat64, shapes[k], *in[k]);
      std::vector<const Tensor*> views;
      for (const Tensor& t : tensors) views.push_back(&t);
      const auto made = run_node(op, views, std::span(&type, 1));
      for (Index i = 0; i < made[0].size(); ++i) out.push_back(values_.round(made[0].at(i)));
      return out;
    }
    const auto clip = as_clip(op);
    for (const double x : *in[0]) {
      out.push_back(
          !clip ? function(name, value, x)
                : std::min(std::max(x, values_.round(clip->lower)), values_.round(clip->upper)));
    }
    return out;
  }

  const EmulatedGraph& net_;
  Habits habits_;
  EmulatedFormat values_, sums_;
  Rng rng_;
};

}  // namespace

std::vector<Habits> all_habits(const InferenceFormat& format) {
  std::vector<Habits> all;
  int way = 0;
  for (const Order order : {Order::kForward, Order::kBackward, Order::kLargestFirst, Order::kPairs,
                            Order::kBlocks, Order::kTree}) {
    for (const bool fused : {false, true}) {
      for (int k = 0; k < 2; ++k) {
        all.push_back({.format = format,
                       .order = order,
                       .fused = fused,
                       .flushes = format.flush_to_zero && way % 3 != 0,
                       .way = way,
                       .seed = static_cast<std::uint64_t>(way)});
        way += 7;
      }
    }
  }
  return all;
}

EmulatedFormat::EmulatedFormat(ElementType type, bool flushes) : type_(type) {
  if (flushes) normal_ = type == ElementType::kFloat16 ? 0x1p-14 : 0x1p-126;
}

double EmulatedFormat::operand(double x) const {
  return std::fabs(x) < normal_ ? std::copysign(0.0, x) : x;
}
double EmulatedFormat::round(double x) const { return operand(round_to(type_, x)); }
double EmulatedFormat::add(double a, double b) const {
  return round(exact_sum(operand(a), operand(b)));
}
double EmulatedFormat::mul(double a, double b) const { return round(operand(a) * operand(b)); }
double EmulatedFormat::div(double a, double b) const { return round(operand(a) / operand(b)); }
double EmulatedFormat::fma(double a, double b, double c) const {
  return round(exact_sum(operand(a) * operand(b), operand(c)));
}
double EmulatedFormat::sqrt(double a) const { return round(std::sqrt(operand(a))); }

Reals emulate(const EmulatedGraph& net, const Reals& x, const Habits& habits) {
  return Emulation(net, habits).run(x);
}

}  // namespace lipscope::testing_support
