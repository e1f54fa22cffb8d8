# SPDX-License-Identifier: Apache-2.0
# The libraries that Starling takes from the distribution. Each missing one ends the configuration with one line that names
# the package to install.

find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
    message(FATAL_ERROR "pkg-config is missing: apt-get install pkg-config")
endif()

function(starling_require_pkg target module package)
    pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
    if(NOT ${target}_FOUND)
        message(FATAL_ERROR "${module} is missing: apt-get install ${package}")
    endif()
endfunction()

starling_require_pkg(liburing "liburing>=2.3" liburing-dev)
starling_require_pkg(numa numa libnuma-dev)
starling_require_pkg(protobuf-c libprotobuf-c libprotobuf-c-dev)
starling_require_pkg(cyaml libcyaml libcyaml-dev)
starling_require_pkg(yaml yaml-0.1 libyaml-dev)
starling_require_pkg(jansson jansson libjansson-dev)
starling_require_pkg(xxhash libxxhash libxxhash-dev)
starling_require_pkg(seccomp libseccomp libseccomp-dev)
starling_require_pkg(microhttpd libmicrohttpd libmicrohttpd-dev)
starling_require_pkg(ncurses ncursesw libncurses-dev)
if(STARLING_TESTS)
    starling_require_pkg(criterion criterion libcriterion-dev)
endif()

# The distribution's oneDNN links OpenCL's loader, and only recommends the package that it is linked with.
starling_require_pkg(ocl-icd OpenCL ocl-icd-opencl-dev)
find_package(dnnl CONFIG QUIET)
if(NOT dnnl_FOUND)
    message(FATAL_ERROR "oneDNN is missing: apt-get install libdnnl-dev")
endif()

find_program(PROTOC_C protoc-c)
if(NOT PROTOC_C)
    message(FATAL_ERROR "protoc-c is missing: apt-get install protobuf-c-compiler")
endif()
find_path(ONNX_PROTO_DIR onnx/onnx.proto)
if(NOT ONNX_PROTO_DIR)
    message(FATAL_ERROR "onnx/onnx.proto is missing: apt-get install libonnx-dev")
endif()
find_package(Threads REQUIRED)
