#ifndef ORRERY_SIMULATOR_NETWORK_EXACT_SUM_H_
#define ORRERY_SIMULATOR_NETWORK_EXACT_SUM_H_

// Sums that do not depend on the order of what is summed.

namespace orrery::simulator {

/// A sum of doubles as two doubles, by Knuth's and Dekker's error-free sum and product (Dekker
/// 1971; Shewchuk 1997, section 2). 106 bits hold a sum of shares and loads exactly, so it is the
/// same in any order, and taking away what was added leaves nothing behind.
class ExactSum {
 public:
  constexpr ExactSum() = default;
  constexpr explicit ExactSum(double value) : high_(value) {}

  /// The double that is nearest to the sum.
  constexpr double value() const { return high_; }

  /// Adds a number; what the double nearest to the sum cannot hold is kept beside it.
  constexpr void Add(double term) {
    const double sum = high_ + term;
    const double added = sum - high_;
    const double lost = (high_ - (sum - added)) + (term - added);
    low_ += lost;
    high_ = sum + low_;
    low_ -= high_ - sum;
  }
  /// Takes away another sum.
  constexpr void Subtract(const ExactSum& other) {
    Add(-other.high_);
    Add(-other.low_);
  }
  /// Takes away `factor` times `other`.
  constexpr void SubtractProduct(double factor, const ExactSum& other) {
    const double product = factor * other.high_;
    Add(-product);
    Add(-ProductError(factor, other.high_, product) - factor * other.low_);
  }

 private:
  // The upper half of a double's bits, by Veltkamp's splitting. Overflows above 1e300.
  static constexpr double Upper(double value) {
    const double shifted = 134217729.0 * value;  // 2^27 + 1
    return shifted - (shifted - value);
  }
  // a × b - product, exactly.
  static constexpr double ProductError(double a, double b, double product) {
    const double a_high = Upper(a);
    const double b_high = Upper(b);
    const double a_low = a - a_high;
    const double b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }

  double high_ = 0;
  double low_ = 0;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_EXACT_SUM_H_
