#include "lowering/blocks/task_name.h"

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {

std::string ToString(const TaskName& name) { return absl::StrCat(name.op, " ", name.value); }

TaskName NameOfTask(const ir::Function& function, ir::OpId op) {
  using transforms::HostWork;
  const HostWork work = transforms::HostWorkOf(function, op);
  const ir::OpInfo& info = function.info(op);
  const bool send = info.op_class == ir::OpClass::kSend;
  return {.op = work == HostWork::kStore  ? "CopyToHost"
                : work == HostWork::kLoad ? "CopyFromHost"
                                          : info.name,
          .value = function.value_name(send ? function.operands(op)[0] : function.result(op))};
}

std::string NameOfSeveral(absl::string_view first, size_t count) {
  return first.empty() ? "" : absl::StrCat(first, " and ", count - 1, " more");
}

std::string NameOfRow(absl::string_view first, absl::string_view last) {
  return first.empty() ? "" : absl::StrCat(first, " … ", last);
}

}  // namespace orrery::lowering
