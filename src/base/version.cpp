// SPDX-License-Identifier: Apache-2.0
#include "lipscope/version.h"

#include <cblas.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <zlib.h>

#ifdef LIPSCOPE_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif

#ifdef LIPSCOPE_HAVE_CBC
#include <CbcConfig.h>
#else
#define CBC_VERSION "not built in"
#endif

namespace lipscope {
namespace {

std::string onednn_version() {
#ifdef LIPSCOPE_HAVE_DNNL
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
#else
  return "not built in";
#endif
}

}  // namespace

std::string version() { return LIPSCOPE_VERSION; }

std::vector<std::pair<std::string, std::string>> build_features() {
  return {{"compiler", "g++ " __VERSION__},
          {"blas", openblas_get_config()},
          {"onednn", onednn_version()},
          {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"zlib", zlibVersion()},
          {"cbc", CBC_VERSION}};
}

}  // namespace lipscope
