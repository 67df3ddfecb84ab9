#include "support/module.h"

#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

// What tells this build from others (cmake/build_stamp.cmake); a module has one of its own.
extern "C" const char orrery_build_stamp[];

namespace orrery {

std::vector<std::string> ModuleFolders(absl::string_view program_folder) {
  const std::filesystem::path folder{std::string(program_folder)};
  return {folder.string(), (folder.parent_path() / "lib" / "orrery").string()};
}

namespace module_cc {
namespace {

constexpr absl::string_view kWanted =
    "wanted the one that was built or installed with this program";

// Types that program and module share may be laid out otherwise in another build.
bool IsOfThisBuild(void* module) {
  const void* const stamp = dlsym(module, "orrery_build_stamp");
  return stamp != nullptr &&
         absl::string_view(static_cast<const char*>(stamp)) == orrery_build_stamp;
}

// A module has the system's library of C++, a program one inside it: what is to happen where memory
// ends is to be so in both, from the first line of code of the module.
void ShareNewHandler() {
  const std::new_handler handler = std::get_new_handler();
  if (handler == nullptr) return;
  void* const library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using SetNewHandler = std::new_handler(std::new_handler);
  auto* const set = reinterpret_cast<SetNewHandler*>(dlsym(library, "_ZSt15set_new_handlerPFvvE"));
  if (set != nullptr) set(handler);
}

// Where memory ends while glibc lists a library's unique symbols (its do_lookup_unique), it ends
// the program in its own way: the heap has room for them before the first library is loaded.
void ReserveRoomForSymbols() {
  constexpr size_t kRoom = size_t{512} << 10;  // many times what their table takes
  void* const room = ::operator new(kRoom);
  ::operator delete(room);
}

absl::StatusOr<void*> Load(const std::string& path, absl::string_view name) {
  ReserveRoomForSymbols();
  ShareNewHandler();
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module != nullptr && !IsOfThisBuild(module)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load ", path, ": it is of another build; ", kWanted));
  }
  void* const entry =
      module == nullptr ? nullptr : dlsym(module, absl::StrCat("orrery_", name, "_entry").c_str());
  if (entry != nullptr) return reinterpret_cast<void* (*)()>(entry)();
  const char* const error = dlerror();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot load ", path, ": ", error == nullptr ? "it is empty" : error, "; ", kWanted));
}

}  // namespace
}  // namespace module_cc

absl::StatusOr<void*> LoadModuleEntry(absl::string_view name,
                                      const std::vector<std::string>& folders) {
  const std::string file = absl::StrCat("liborrery_", name, ".so");
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", file);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return module_cc::Load(path, name);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "found no ", file, " in ", absl::StrJoin(folders, " or "), "; ", module_cc::kWanted));
}

absl::StatusOr<void*> LoadModuleEntry(absl::string_view name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return LoadModuleEntry(name, ModuleFolders(program.parent_path().string()));
}

}  // namespace orrery
