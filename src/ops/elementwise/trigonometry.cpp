// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

// (1 - x)(1 + x) for the members of x in [-1, 1]; falls with |x|.
Interval room(const Interval& x) {
  return over_pieces(abs(intersect(x, {-1, 1})),
                     [](double t) { return (1 - point(t)) * (1 + point(t)); });
}

struct Sin {
  static constexpr std::string_view kName = "Sin";
  template <class T>
  T value(T x) const {
    return std::sin(x);
  }
  double slope(double x) const { return std::cos(x); }
  WideDual wide(const WideDual& x) const { return chained(sin(x.value), cos(x.value), x); }
  Interval range(const Interval& x) const { return sin(x); }
  Interval slopes(const Interval& x) const { return cos(x); }
};

struct Cos {
  static constexpr std::string_view kName = "Cos";
  template <class T>
  T value(T x) const {
    return std::cos(x);
  }
  double slope(double x) const { return -std::sin(x); }
  WideDual wide(const WideDual& x) const { return chained(cos(x.value), -sin(x.value), x); }
  Interval range(const Interval& x) const { return cos(x); }
  Interval slopes(const Interval& x) const { return -sin(x); }
};

struct Tan {
  static constexpr std::string_view kName = "Tan";
  template <class T>
  T value(T x) const {
    return std::tan(x);
  }
  double slope(double x) const {
    const double t = std::tan(x);
    return 1 + t * t;
  }
  // Without a zero of cos in x there is no pole, and tan increases.
  Interval range(const Interval& x) const {
    if (!is_bounded(x) || contains(cos(x), 0)) return kEntire;
    return {tan_down(x.lo), tan_up(x.hi)};
  }
  Interval slopes(const Interval& x) const {
    const Interval y = range(x);
    return y == kEntire ? kEntire : 1 + sqr(y);
  }
};

struct Asin {
  static constexpr std::string_view kName = "Asin";
  template <class T>
  T value(T x) const {
    return std::asin(x);
  }
  double slope(double x) const { return 1 / std::sqrt((1 - x) * (1 + x)); }
  Interval range(const Interval& x) const { return asin(x); }
  Interval slopes(const Interval& x) const { return 1 / sqrt(room(x)); }
};

struct Acos {
  static constexpr std::string_view kName = "Acos";
  template <class T>
  T value(T x) const {
    return std::acos(x);
  }
  double slope(double x) const { return -1 / std::sqrt((1 - x) * (1 + x)); }
  Interval range(const Interval& x) const { return acos(x); }
  Interval slopes(const Interval& x) const { return -1 / sqrt(room(x)); }
};

struct Atan {
  static constexpr std::string_view kName = "Atan";
  template <class T>
  T value(T x) const {
    return std::atan(x);
  }
  double slope(double x) const { return 1 / (1 + x * x); }
  Interval range(const Interval& x) const { return atan(x); }
  Interval slopes(const Interval& x) const { return 1 / (1 + sqr(x)); }
};

struct Sinh {
  static constexpr std::string_view kName = "Sinh";
  template <class T>
  T value(T x) const {
    return std::sinh(x);
  }
  double slope(double x) const { return std::cosh(x); }
  Interval range(const Interval& x) const { return sinh(x); }
  Interval slopes(const Interval& x) const { return cosh(x); }
};

struct Cosh {
  static constexpr std::string_view kName = "Cosh";
  template <class T>
  T value(T x) const {
    return std::cosh(x);
  }
  double slope(double x) const { return std::sinh(x); }
  Interval range(const Interval& x) const { return cosh(x); }
  Interval slopes(const Interval& x) const { return sinh(x); }
};

struct Asinh {
  static constexpr std::string_view kName = "Asinh";
  template <class T>
  T value(T x) const {
    return std::asinh(x);
  }
  double slope(double x) const { return 1 / std::hypot(1.0, x); }
  Interval range(const Interval& x) const { return asinh(x); }
  Interval slopes(const Interval& x) const { return 1 / sqrt(1 + sqr(x)); }
};

struct Acosh {
  static constexpr std::string_view kName = "Acosh";
  template <class T>
  T value(T x) const {
    return std::acosh(x);
  }
  double slope(double x) const { return 1 / std::sqrt((x - 1) * (x + 1)); }
  Interval range(const Interval& x) const { return acosh(x); }
  Interval slopes(const Interval& x) const {
    const Interval inside = intersect(x, {1, kInf});
    return 1 / sqrt((inside - 1) * (inside + 1));
  }
};

struct Atanh {
  static constexpr std::string_view kName = "Atanh";
  template <class T>
  T value(T x) const {
    return std::atanh(x);
  }
  double slope(double x) const { return 1 / ((1 - x) * (1 + x)); }
  Interval range(const Interval& x) const { return atanh(x); }
  Interval slopes(const Interval& x) const { return 1 / room(x); }
};

}  // namespace

std::vector<OpKind> op_trigonometry() {
  return {unary_kind<Sin>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Cos>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Tan>([](Rng& rng) { return unary_cases(rng, {}, -1.2, 1.2); }),
          unary_kind<Asin>([](Rng& rng) { return unary_cases(rng, {}, -0.9, 0.9); }),
          unary_kind<Acos>([](Rng& rng) { return unary_cases(rng, {}, -0.9, 0.9); }),
          unary_kind<Atan>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Sinh>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Cosh>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Asinh>([](Rng& rng) { return unary_cases(rng); }),
          unary_kind<Acosh>([](Rng& rng) { return unary_cases(rng, {}, 1.2, 4); }),
          unary_kind<Atanh>([](Rng& rng) { return unary_cases(rng, {}, -0.9, 0.9); })};
}

}  // namespace lipscope
