// SPDX-License-Identifier: Apache-2.0
#include "pieces/signs.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

// Calls visit(layer, unit, value before it), layer by layer; in plain arithmetic.
template <class Visit>
void for_values_at(const LayeredNet& net, const std::vector<double>& point, const Visit& visit) {
  std::vector<double> x = point;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> y(static_cast<std::size_t>(layer.out));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double* w = layer.row(static_cast<Index>(i));
      double sum = 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      for (std::size_t j = 0; j < x.size(); ++j) sum += w[j] * x[j];
      visit(k, i, sum);
      y[i] = plain_value(layer.form(i), sum);
    }
    x = std::move(y);
  }
}

}  // namespace

std::size_t piece_at(const UnitForm& form, double z) {
  std::size_t piece = 0;
  while (piece + 1 < form.pieces() && z > midpoint(form.kink(piece))) ++piece;
  return piece;
}

double plain_value(const UnitForm& form, double z) {
  const auto [slope, offset] = form.piece(piece_at(form, z));
  return slope * z + midpoint(offset);
}

Spans open_spans(const LayeredNet& net) {
  Spans spans(net.hidden());
  for (std::size_t k = 0; k < spans.size(); ++k) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(net.layers[k].out); ++i)
      spans[k].push_back({0, net.layers[k].form(i).pieces() - 1});
  }
  return spans;
}

std::optional<std::size_t> kink_at(const UnitForm& form, double at) {
  for (std::size_t i = 0; i + 1 < form.pieces(); ++i) {
    if (midpoint(form.kink(i)) == at) return i;
  }
  return std::nullopt;
}

bool cut(PieceSpan& span, const UnitForm& form, const Side& side) {
  const auto kink = kink_at(form, side.at);
  if (!kink) return true;
  if (side.above ? span.last <= *kink : span.first > *kink) return false;
  if (side.above) {
    span.first = std::max(span.first, *kink + 1);
  } else {
    span.last = std::min(span.last, *kink);
  }
  return true;
}

std::optional<Spans> spans_of(const LayeredNet& net, const Path& path) {
  Spans spans = open_spans(net);
  for (const Side& side : path) {
    const auto [layer, place] = side.unit;
    if (!cut(spans[layer][place], net.layers[layer].form(place), side)) return std::nullopt;
  }
  return spans;
}

Spans spans_at(const LayeredNet& net, const std::vector<double>& point) {
  Spans spans = open_spans(net);
  for_values_at(net, point, [&](std::size_t k, std::size_t i, double z) {
    const std::size_t piece = piece_at(net.layers[k].form(i), z);
    spans[k][i] = {piece, piece};
  });
  return spans;
}

Signs signs_at(const LayeredNet& net, const std::vector<double>& point) {
  Signs signs(net.hidden());
  for_values_at(net, point,
                [&](std::size_t k, std::size_t, double z) { signs[k].push_back(z > 0 ? 1 : -1); });
  return signs;
}

bool agrees(const Spans& spans, const Spans& with) {
  for (std::size_t k = 0; k < spans.size(); ++k) {
    for (std::size_t i = 0; i < spans[k].size(); ++i) {
      if (spans[k][i].first > with[k][i].first || spans[k][i].last < with[k][i].last) return false;
    }
  }
  return true;
}

Interval slopes_of(const UnitForm& form, const PieceSpan& span) {
  if (span.first == 0 && span.last + 1 == form.pieces()) return form.slopes;
  Interval slopes = point(form.piece(span.first).slope);
  for (std::size_t i = span.first + 1; i <= span.last; ++i)
    slopes = hull(slopes, point(form.piece(i).slope));
  return slopes;
}

Slopes slopes_of(const LayeredNet& net, const Spans& spans) {
  Slopes slopes(spans.size());
  for (std::size_t k = 0; k < spans.size(); ++k) {
    for (std::size_t i = 0; i < spans[k].size(); ++i)
      slopes[k].push_back(slopes_of(net.layers[k].form(i), spans[k][i]));
  }
  return slopes;
}

double way_to_kink(const LayeredNet& net, const std::vector<double>& x,
                   const std::vector<double>& d) {
  double way = kInf;
  std::vector<double> value = x, change = d;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> z(static_cast<std::size_t>(layer.out)), dz = z;
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double* w = layer.row(static_cast<Index>(i));
      z[i] = 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      for (std::size_t j = 0; j < value.size(); ++j) {
        z[i] += w[j] * value[j];
        dz[i] += w[j] * change[j];
      }
      const UnitForm form = layer.form(i);
      for (std::size_t p = 0; p + 1 < form.pieces(); ++p) {
        if (dz[i] != 0 && form.below != form.above)
          way = std::min(way, std::fabs((z[i] - midpoint(form.kink(p))) / dz[i]));
      }
      dz[i] *= form.piece(piece_at(form, z[i])).slope;
      z[i] = plain_value(form, z[i]);
    }
    value = std::move(z);
    change = std::move(dz);
  }
  return way;
}

}  // namespace lipscope
