#ifndef ORRERY_TESTS_MUTATION_SWITCHES_H_
#define ORRERY_TESTS_MUTATION_SWITCHES_H_

#include <cstdlib>

// Which mutant of a build is on: tests/mutate compiles many at once, in its private copy of the
// tree, each behind a question to this header. No other build includes it.
namespace orrery_mutation {

// Whether the mutant of this number is on: it is named by the environment's ORRERY_MUTANT.
inline bool IsOn(int number) {
  static const int on = [] {
    const char* text = std::getenv("ORRERY_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return on == number;
}

}  // namespace orrery_mutation

#endif  // ORRERY_TESTS_MUTATION_SWITCHES_H_
