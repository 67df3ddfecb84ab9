# The step time that ${OUTSIDE} prints is, byte for byte, the one that ${SIMULATE} prints.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${OUTSIDE} OUTPUT_VARIABLE outside OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${SIMULATE} --model mlp:layers=16,dim=1024 --batch-size 2048 --cluster uniform:8@200Gbps
          --optimizer sgd --dp 2 --hp 2 --pp 2 --micro-batches 4 --schedule 1f1b
          --sharding distir
  OUTPUT_VARIABLE report COMMAND_ERROR_IS_FATAL ANY)
if(NOT report MATCHES "step time[^(]*\\(([^)]*)\\)")
  message(FATAL_ERROR "no step time in the report:\n${report}")
endif()
message(STATUS "outside: ${outside}; simulate: ${CMAKE_MATCH_1}")
if(NOT outside STREQUAL CMAKE_MATCH_1)
  message(FATAL_ERROR "the figures differ")
endif()
