#include "transforms/strategies/reparametrize.h"

namespace orrery::transforms::strategies {
void Reparametrize(Model&) {}
}  // namespace orrery::transforms::strategies
