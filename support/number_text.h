#ifndef ORRERY_SUPPORT_NUMBER_TEXT_H_
#define ORRERY_SUPPORT_NUMBER_TEXT_H_

#include <string>

// Numbers as text that reads back as the same number. How many digits there are, and when there is
// an exponent, differs: files that are compared byte by byte have each been written in one way.

namespace orrery {

/// In the fewest characters: "0.5", "120000", "1e+06", "1e-04"; "inf", "nan".
std::string ShortestText(double value);

/// In the fewest digits; an exponent where printf's %g of so many digits has one: "0.5", "1.2e+05",
/// "1e+06", "0.0001". So 10 is "1e+01".
std::string FewestDigits(double value);

/// In 17 digits, less the zeros that end them, whether fewer would do or not: "0.5",
/// "0.10000000000000001", "1000000".
std::string SeventeenDigits(double value);

/// For people: four figures, and k, M, G or T in place of thousands: "11.7", "1034", "493.6 k",
/// "3.226 M", "0.0125".
std::string ShortNumber(double value);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NUMBER_TEXT_H_
