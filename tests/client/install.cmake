# SPDX-License-Identifier: Apache-2.0
# Installs the client into an empty folder and builds its example against it, found by CMake and by pkg-config.
set(root ${WORK}/installed)
file(REMOVE_RECURSE ${root} ${WORK}/consumer)
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(result)
        message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
    endif()
endfunction()

foreach(component library development)
    run(${CMAKE_COMMAND} --install ${BUILD} --component ${component} --prefix ${root})
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/consumer -B ${WORK}/consumer -DCMAKE_PREFIX_PATH=${root} -DHELLO=${HELLO} -DHELLO_CPP=${HELLO_CPP}
    -DCMAKE_C_FLAGS=${FLAGS} -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)

file(GLOB_RECURSE pc ${root}/starling.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
execute_process(COMMAND pkg-config --cflags --libs starling OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${FLAGS} ${flags}")
run(${CC} ${HELLO} ${flags} -o ${WORK}/consumer/hello-pkg-config)

# It runs: a path that no socket can have is refused without waiting for anything.
string(REPEAT "/long" 50 socket)
foreach(program hello-shared hello-static hello-cpp hello-pkg-config)
    set(ENV{LD_LIBRARY_PATH} ${pc_dir}/..)
    execute_process(COMMAND ${WORK}/consumer/${program} digits ${socket} RESULT_VARIABLE result ERROR_VARIABLE error TIMEOUT 60)
    if(NOT result EQUAL 1 OR NOT error MATCHES "longer than")
        message(FATAL_ERROR "${program}: ${result}: ${error}")
    endif()
endforeach()
