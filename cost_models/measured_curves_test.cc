#include "cost_models/measured_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"

namespace orrery::cost_models {
namespace measured_curves_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

MeasuredCurves Read(const std::string& rows) {
  const auto read = ParseMeasuredCurves(absl::StrCat("{\"rows\": [", rows, "]}"), "f.json");
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : MeasuredCurves();
}

std::string ErrorOf(const std::string& rows) {
  const auto read = ParseMeasuredCurves(absl::StrCat("{\"rows\": [", rows, "]}"), "f.json");
  return std::string(read.status().message());
}

TEST(ParseMeasuredCurves, ReadsTimesAndBusBandwidth) {
  const MeasuredCurves read = Read(
      R"({"id": "a", "collective": "all_reduce", "split": "holdout", "verified": true,
          "hw": {"gpus": 8, "nodes": 2, "gpu": "H100", "intra": "NVLink4", "inter": "EFA"},
          "points": [{"bytes": 4096, "time_us": 20, "busbw_GBs": 9}, {"bytes": 1024, "time_us": 10},
                     {"bytes": 7000000000, "busbw_GBs": 350.0, "algo": "NVLS"},
                     {"bytes": 8, "time_us": null}]})");
  ASSERT_THAT(read.curves, SizeIs(1));
  const MeasuredCurve& curve = read.curves[0];
  EXPECT_EQ(curve.id, "a");
  EXPECT_EQ(curve.split, "holdout");
  EXPECT_EQ(curve.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(curve.devices, 8);
  EXPECT_EQ(curve.nodes, 2);
  EXPECT_EQ(curve.device, "H100");
  EXPECT_EQ(curve.between_nodes, "EFA");
  ASSERT_THAT(curve.points, SizeIs(3));
  EXPECT_EQ(curve.points[0].size, Bytes(1024));
  EXPECT_DOUBLE_EQ(curve.points[0].seconds, 10e-6);
  EXPECT_DOUBLE_EQ(curve.points[2].seconds, 7e9 * 1.75 / 350e9);
}

TEST(ParseMeasuredCurves, LeavesOutWhatIsNoSweep) {
  const MeasuredCurves read = Read(
      R"({"id": "p2p", "collective": "p2p latency", "points": [{"bytes": 8, "time_us": 1}]},
         {"id": "efficiency", "collective": "all_to_all", "points": [{"bytes": 8, "share": 1}]},
         {"collective": "all_gather", "points": 7},
         {"id": "one", "collective": "all_gather", "hw": {"gpus": 4, "nodes": null},
          "points": [{"bytes": 8, "time_us": 1}, 5]})");
  ASSERT_THAT(read.curves, SizeIs(1));
  EXPECT_EQ(read.curves[0].nodes, 1);
  EXPECT_THAT(read.others, ElementsAre("p2p", "efficiency", "row 2"));
}

std::string Row(const std::string& hardware, const std::string& point) {
  return absl::StrCat(R"({"id": "x", "collective": "all_reduce", "hw": )", hardware,
                      R"(, "points": [{"bytes": 1, "time_us": 1}, )", point, "]}");
}

TEST(ParseMeasuredCurves, SaysWhereWhatAndWhatWasWanted) {
  const std::string point = R"({"bytes": 8, "time_us": 1})", hw = R"({"gpus": 8})";
  EXPECT_EQ(ErrorOf(Row(R"({"gpus": "8"})", point)),
            "f.json: row 0 (x): hw.gpus: is no number; wanted 1 to 1048576");
  EXPECT_EQ(ErrorOf(Row(R"({"gpus": 8.5})", point)),
            "f.json: row 0 (x): hw.gpus: got 8.5; wanted 1 to 1048576");
  EXPECT_EQ(ErrorOf(Row(R"({"gpus": 8, "nodes": 9})", point)),
            "f.json: row 0 (x): hw.nodes: got 9; wanted 1 to 8");
  EXPECT_EQ(ErrorOf(Row(R"({"gpus": 1})", point)),
            "f.json: row 0 (x): hw.gpus: got 1; wanted at least 2");
  EXPECT_THAT(ErrorOf(Row("[]", point)), HasSubstr("row 0 (x): got no hw; wanted such as"));
  EXPECT_EQ(ErrorOf(Row(hw, R"({"bytes": 0, "time_us": 1})")),
            "f.json: row 0 (x): bytes: got 0; wanted 1 to 1e+15");
  EXPECT_THAT(ErrorOf(Row(hw, R"({"bytes": 8, "time_us": -2})")),
              HasSubstr("time_us: got -2; wanted 0.001 to 1e+11"));
  for (const char* time : {"0", "1e-150", "0.00099", "1.01e11", "1e308"}) {
    EXPECT_THAT(ErrorOf(Row(hw, absl::StrCat(R"({"bytes": 8, "time_us": )", time, "}"))),
                HasSubstr("; wanted 0.001 to 1e+11"))
        << time;
  }
  for (const char* bus : {"0", "-5", "1e200", "1e-300"}) {  // 7/4 of 8 bytes
    EXPECT_THAT(ErrorOf(Row(hw, absl::StrCat(R"({"bytes": 8, "busbw_GBs": )", bus, "}"))),
                HasSubstr("; wanted 1.4e-13 to 14"))
        << bus;
  }
  EXPECT_THAT(ErrorOf(Row(hw, R"({"bytes": 1e300, "time_us": 1})")),
              HasSubstr("bytes: got 1e+300"));
  EXPECT_EQ(ErrorOf("3"), "f.json: row 0: is no object; wanted a sweep");
  EXPECT_THAT(ErrorOf(""), HasSubstr("f.json: got no sweep; wanted a row with points"));
}

// Whatever a file holds, there is an answer.
TEST(ParseMeasuredCurves, NeverFallsOverSpoiltFiles) {
  const std::string sound =
      absl::StrCat("{\"rows\": [", Row("{\"gpus\": 8}", "{\"bytes\": 9}"), "]}");
  EXPECT_TRUE(ParseMeasuredCurves(sound, "f").ok());
  for (const char* text :
       {"", "[]", "{}", "{\"rows\": 1}", "{\"rows\": {}}", "nul", "{\"rows\": [nul"}) {
    EXPECT_THAT(std::string(ParseMeasuredCurves(text, "f").status().message()),
                HasSubstr("f: is no file of sweeps; wanted JSON such as"));
  }
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string spoilt = sound;
    for (int k = 0; k < 3; ++k) {
      const char put = "{}[]\",:0-e18n"[random() % 13];
      spoilt[random() % spoilt.size()] = put;
    }
    const auto read = ParseMeasuredCurves(spoilt, "f");
    if (read.ok()) PrintFits(*read);
  }
}

// At the limits of what is read, lines are of numbers still.
TEST(FitCurve, HasNumbersOfWhateverIsRead) {
  std::string points;
  std::mt19937 random(12);
  for (int i = 0; i < 200; ++i) {
    points.clear();
    for (int k = 0; k < 12; ++k) {
      const char* const bytes[] = {"1", "2", "4096", "1e9", "1e15"};
      const char* const times[] = {"0.001", "0.5", "20", "1e6", "1e11"};
      const char* const size = bytes[random() % 5];
      const char* const time = times[random() % 5];
      absl::StrAppend(&points, k == 0 ? "" : ", ", R"({"bytes": )", size, R"(, "time_us": )", time,
                      "}");
    }
    const auto read =
        ParseMeasuredCurves(absl::StrCat("{\"rows\": [", Row("{\"gpus\": 8}", points), "]}"), "f");
    ASSERT_TRUE(read.ok()) << read.status();
    const std::string fits = PrintFits(*read);
    EXPECT_EQ(fits.find("nan"), std::string::npos) << fits;
    EXPECT_EQ(fits.find("inf"), std::string::npos) << fits;
  }
}

MeasuredCurve Curve(double (*seconds)(double), int first, int last) {
  MeasuredCurve curve = {.id = "made", .devices = 8};
  for (int power = first; power <= last; ++power) {
    const int64_t size = int64_t{1} << power;
    curve.points.push_back({Bytes(size), seconds(static_cast<double>(size))});
  }
  return curve;
}

TEST(FitCurve, FindsTheLineThatPointsAreOn) {
  const CurveFit fit = FitCurve(Curve([](double s) { return 20e-6 + s / 100e9; }, 10, 30));
  ASSERT_THAT(fit.lines, SizeIs(1));
  EXPECT_NEAR(fit.lines[0].alpha_s, 20e-6, 1e-11);
  EXPECT_NEAR(fit.lines[0].beta_s_a_byte, 1e-11, 1e-16);
  EXPECT_LT(fit.worst_error, 1e-6);
}

TEST(FitCurve, FindsProtocols) {
  const CurveFit fit = FitCurve(Curve(
      [](double s) {
        return std::min({10e-6 + s / 10e9, 40e-6 + s / 80e9, 200e-6 + s / 200e9});
      },
      10, 34));
  ASSERT_THAT(fit.lines, SizeIs(3));
  EXPECT_NEAR(fit.lines[0].alpha_s, 10e-6, 1e-8);
  EXPECT_NEAR(fit.lines[1].alpha_s, 40e-6, 4e-6);
  EXPECT_NEAR(fit.lines[2].beta_s_a_byte, 5e-12, 1e-14);
  EXPECT_LT(fit.mean_error, 0.01);
}

TEST(FitCurve, KeepsTheFloor) {
  const CurveFit fit =
      FitCurve(Curve([](double s) { return std::max(30e-6, 10e-6 + s / 1e9); }, 3, 25));
  EXPECT_DOUBLE_EQ(fit.floor_s, 30e-6);
  EXPECT_DOUBLE_EQ(fit.Seconds(1), 30e-6);
  EXPECT_LT(fit.mean_error, 0.05);
}

// Points of one size, one point, times that fall: a line all the same, with neither number below 0.
TEST(FitCurve, TakesWhatItGets) {
  const auto fit_of = [](std::vector<MeasuredPoint> points) {
    const CurveFit fit = FitCurve({.devices = 2, .points = std::move(points)});
    for (const AlphaBeta& line : fit.lines) {
      EXPECT_GE(line.alpha_s, 0);
      EXPECT_GE(line.beta_s_a_byte, 0);
      EXPECT_TRUE(std::isfinite(line.alpha_s) && std::isfinite(line.beta_s_a_byte));
    }
    EXPECT_GE(fit.worst_error, fit.mean_error * (1 - 1e-9));
    return fit;
  };
  EXPECT_DOUBLE_EQ(fit_of({{Bytes(1000), 1e-6}}).Seconds(2000), 2e-6);
  fit_of({{Bytes(1000), 1e-6}, {Bytes(1000), 3e-6}});
  const CurveFit falls = fit_of({{Bytes(1), 3e-6}, {Bytes(1000), 2e-6}, {Bytes(2000), 1e-6}});
  EXPECT_EQ(falls.lines[0].beta_s_a_byte, 0);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<MeasuredPoint> points;
    for (uint64_t n = 1 + random() % 40; n > 0; --n) {
      points.push_back({Bytes(1 + static_cast<int64_t>(random())),
                        1e-6 * static_cast<double>(1 + random() % 1000)});
    }
    std::ranges::sort(points, {}, [](const MeasuredPoint& p) { return p.size; });
    fit_of(points);
  }
}

// More points never make the mean error of one line less than that of three.
TEST(FitCurve, MoreLinesAreNeverWorse) {
  std::mt19937 random(5);
  for (int i = 0; i < 50; ++i) {
    MeasuredCurve curve = Curve([](double s) { return 30e-6 + s / 50e9; }, 8, 30);
    for (MeasuredPoint& point : curve.points) {
      point.seconds *= 0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000;
    }
    const CurveFit fit = FitCurve(curve);
    EXPECT_LT(fit.mean_error, 0.2);
    EXPECT_LE(fit.lines.size(), 3u);
  }
}

TEST(PrintFits, IsATable) {
  const MeasuredCurves curves = Read(
      R"({"id": "x", "collective": "all_gather", "hw": {"gpus": 4},
          "points": [{"bytes": 1024, "time_us": 11}, {"bytes": 2048, "time_us": 12},
                     {"bytes": 10240, "time_us": 20}]}, {"id": "y"})");
  EXPECT_EQ(PrintFits(curves),
            "row,kind,devices,nodes,points,mean_error,worst_error,floor_us,lines\n"
            "x,all-gather,4,1,3,0.0%,0.0%,11.00,10.00 us + 1000.000 ns/KiB\n"
            "y,no sweep\n");
}

}  // namespace
}  // namespace measured_curves_test_cc
}  // namespace orrery::cost_models
