#ifndef ORRERY_SUPPORT_MODULE_H_
#define ORRERY_SUPPORT_MODULE_H_

#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A module is a shared library that holds one function, and the large libraries that this function
// needs: a program that starts without it starts in a millisecond. Modules share Orrery's own code
// with the program that loads them (cmake/OrreryModule.cmake).

/// In one file of module `name`: the function that it holds, which returns an absl::StatusOr.
#define ORRERY_MODULE_ENTRY(name, function)                                         \
  extern "C" __attribute__((visibility("default"))) void* orrery_##name##_entry() { \
    return reinterpret_cast<void*>(&orrery::internal::Catching<&function>::Call);   \
  }

namespace orrery::internal {

/// A function of a module that lets no exception out: a program finds its own way back up, with a
/// library of C++ inside it, and aborts where one that another library threw arrives.
template <auto function>
struct Catching;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct Catching<function> {
  static Result Call(Arguments... arguments) {
    try {
      return function(std::forward<Arguments>(arguments)...);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("out of memory; try a smaller file");
    } catch (const std::exception& error) {
      return absl::InternalError(error.what());
    }
  }
};

}  // namespace orrery::internal

namespace orrery {

/// The folders in which a program that stands in `program_folder` looks for modules, first to last:
/// its own, then ../lib/orrery.
std::vector<std::string> ModuleFolders(absl::string_view program_folder);

/// What `orrery_NAME_entry` of liborrery_NAME.so returns; the module is then in memory to the end.
/// The error, one line, says where a module was looked for, or what is wrong with the one found:
/// one of another build is not used, since types that it shares with the program may differ.
absl::StatusOr<void*> LoadModuleEntry(absl::string_view name,
                                      const std::vector<std::string>& folders);

/// The same in the folders of this program.
absl::StatusOr<void*> LoadModuleEntry(absl::string_view name);

/// The function that module `name` holds, of type `Function`.
template <typename Function>
absl::StatusOr<Function*> LoadModule(absl::string_view name) {
  const absl::StatusOr<void*> entry = LoadModuleEntry(name);
  if (!entry.ok()) return entry.status();
  return reinterpret_cast<Function*>(*entry);
}

}  // namespace orrery

#endif  // ORRERY_SUPPORT_MODULE_H_
