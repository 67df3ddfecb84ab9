# cmake -DOUT=file.cc -DROOT=folder "-DHEADERS=a.h;b.h" -DBUILD=text -P build_stamp.cmake
# Writes what tells this build from others: a hash of the headers that programs and modules share,
# and of what they are compiled by and with. A file that would be the same stays as it is.
set(all "${BUILD}")
foreach(header IN LISTS HEADERS)
  file(MD5 ${ROOT}/${header} hash)
  string(APPEND all "\n${header} ${hash}")
endforeach()
string(MD5 stamp "${all}")
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
[[// Of this build: cmake/build_stamp.cmake.
extern "C" {
extern __attribute__((visibility("default"))) const char orrery_build_stamp[];
// Program and modules have one each, which clang's sanitizer takes for a mistake.
#ifdef __clang__
__attribute__((no_sanitize("address")))
#endif
const char orrery_build_stamp[] = "orrery build @stamp@";
}
]])
