// SPDX-License-Identifier: Apache-2.0
#include "games/point.h"

#include <algorithm>
#include <cmath>

#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

std::vector<double> exponentials(const std::vector<double>& z) {
  std::vector<double> out(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) out[i] = std::exp(z[i]);
  return out;
}

// q - y - y t for q = y exp(t), without cancellation.
double divergence_term(double y, double q, double t) {
  if (std::fabs(t) > 1e-3) return q - y - y * t;
  return y * t * t * (0.5 + t * (1.0 / 6 + t * (1.0 / 24)));
}

// ln(1 - damping + damping e^t).
double damped_change(double damping, double t) {
  if (damping == 1) return t;
  if (t > 1) return t + std::log(damping + (1 - damping) * std::exp(-t));
  return std::log1p(damping * std::expm1(t));
}

}  // namespace

std::vector<double> Board::times(const std::vector<double>& y) const {
  std::vector<double> out(static_cast<std::size_t>(rows));
  gemv(rows, cols, 1, {entries.data(), cols}, y.data(), 1, 0, out.data(), 1);
  return out;
}

std::vector<double> Board::transposed_times(const std::vector<double>& x) const {
  std::vector<double> out(static_cast<std::size_t>(cols));
  gemv(cols, rows, 1, {entries.data(), cols, true}, x.data(), 1, 0, out.data(), 1);
  return out;
}

double log_softmax(std::vector<double>& z) {
  const double top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - top);
  const double tail = std::log(sum);
  for (double& value : z) value = (value - top) - tail;
  return top + tail;
}

Point evaluate(const Board& board, double tau, std::vector<double> logits) {
  Point point;
  point.w = std::move(logits);
  log_softmax(point.w);
  point.y = exponentials(point.w);
  point.row = board.times(point.y);
  std::vector<double> log_x(point.row.size());
  for (std::size_t i = 0; i < log_x.size(); ++i) log_x[i] = -point.row[i] / tau;
  point.potential = log_softmax(log_x);
  point.x = exponentials(log_x);
  point.col = board.transposed_times(point.x);
  std::vector<double> log_response(point.col.size());
  for (std::size_t j = 0; j < log_response.size(); ++j) log_response[j] = point.col[j] / tau;
  log_softmax(log_response);
  double mean = 0;
  point.rho.resize(point.col.size());
  for (std::size_t j = 0; j < point.rho.size(); ++j) {
    const double t = log_response[j] - point.w[j];
    point.rho[j] = t;
    mean += point.y[j] * t;
    point.divergence += divergence_term(point.y[j], std::exp(log_response[j]), t);
    if (point.y[j] > 0) point.potential += point.y[j] * point.w[j];
  }
  for (std::size_t j = 0; j < point.rho.size(); ++j) {
    point.rho[j] -= mean;
    point.residual += point.y[j] * point.rho[j] * point.rho[j];
  }
  point.residual = std::max(point.residual, 2 * point.divergence);
  return point;
}

Point respond(const Board& board, double tau, double damping, const Point& point) {
  std::vector<double> logits = point.w;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    // The mean under y of the log-ratio of response and y is minus their divergence.
    logits[j] += damped_change(damping, point.rho[j] - point.divergence);
  }
  return evaluate(board, tau, std::move(logits));
}

}  // namespace lipscope
