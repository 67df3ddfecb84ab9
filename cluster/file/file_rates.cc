#include "cluster/file/file_rates.h"

#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster/device.h"
#include "cluster/quantity.h"
#include "cluster/rate_figures.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::cluster {
namespace file_rates_cc {
namespace {

using google::protobuf::Message;

// A field of messages within messages, by reflection: the names of cluster.proto are those of
// cluster/rate_figures.h.
const google::protobuf::FieldDescriptor* FieldOf(const Message& message, absl::string_view name) {
  const auto* const field = message.GetDescriptor()->FindFieldByName(std::string(name));
  ORRERY_CHECK(field != nullptr) << message.GetDescriptor()->full_name() << " lacks " << name;
  return field;
}

absl::Status ReadValue(const Message& message, absl::string_view name, const RateFigure& figure,
                       const FilePosition& position) {
  const auto* const field = FieldOf(message, name);
  const auto& reflection = *message.GetReflection();
  if (const auto* const time = std::get_if<Duration*>(&figure.value)) {
    const absl::StatusOr<Duration> parsed = ParseDuration(reflection.GetString(message, field));
    if (!parsed.ok()) return position.Error(Quotable(parsed.status().message()));
    **time = *parsed;
  } else if (const auto* const count = std::get_if<int*>(&figure.value)) {
    **count = reflection.GetInt32(message, field);
  } else if (const auto* const flag = std::get_if<bool*>(&figure.value)) {
    **flag = reflection.GetBool(message, field);
  } else {
    *std::get<double*>(figure.value) = reflection.GetDouble(message, field);
  }
  if (const absl::Status status = CheckFigure(figure); !status.ok()) return position.Error(status);
  return absl::OkStatus();
}

// Leaves the figure as it is where the file does not say it.
absl::Status ReadFigure(const Message& rates, const RateFigure& figure,
                        const FilePosition& position) {
  const std::vector<std::string> names = absl::StrSplit(figure.path, '.');
  const Message* message = &rates;
  FilePosition at = position;
  for (const std::string& name : names) {
    const auto* const field = FieldOf(*message, name);
    if (!message->GetReflection()->HasField(*message, field)) return absl::OkStatus();
    at = at.At(name);
    if (&name == &names.back()) return ReadValue(*message, name, figure, at);
    message = &message->GetReflection()->GetMessage(*message, field);
  }
  return absl::OkStatus();
}

void FillFigure(const RateFigure& figure, Message& rates) {
  const std::vector<std::string> names = absl::StrSplit(figure.path, '.');
  Message* message = &rates;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    message = message->GetReflection()->MutableMessage(message, FieldOf(*message, names[i]));
  }
  const auto* const field = FieldOf(*message, names.back());
  const auto& reflection = *message->GetReflection();
  if (const auto* const time = std::get_if<Duration*>(&figure.value)) {
    reflection.SetString(message, field, Print(**time));
  } else if (const auto* const count = std::get_if<int*>(&figure.value)) {
    reflection.SetInt32(message, field, **count);
  } else if (const auto* const flag = std::get_if<bool*>(&figure.value)) {
    reflection.SetBool(message, field, **flag);
  } else {
    reflection.SetDouble(message, field, *std::get<double*>(figure.value));
  }
}

}  // namespace
}  // namespace file_rates_cc

absl::StatusOr<KernelRates> ReadRates(const file::KernelRates& message,
                                      const FilePosition& position, const KernelRates& otherwise) {
  KernelRates rates = otherwise;
  if (message.has_like()) {
    const absl::StatusOr<Device> like = FindDevice(message.like());
    if (!like.ok()) return position.At("like").Error(Quotable(like.status().message()));
    rates = like->rates;
  }
  rates.source = message.has_source()
                     ? Quotable(message.source())
                     : absl::StrCat("its cluster file; what that does not say: ", rates.source);
  rates.measured = true;
  for (const RateFigure& figure : FiguresOf(rates)) {
    ORRERY_RETURN_IF_ERROR(file_rates_cc::ReadFigure(message, figure, position));
  }
  return rates;
}

void FillRates(KernelRates rates, file::KernelRates& message) {
  message.set_source(rates.source);
  for (const RateFigure& figure : FiguresOf(rates)) file_rates_cc::FillFigure(figure, message);
}

}  // namespace orrery::cluster
