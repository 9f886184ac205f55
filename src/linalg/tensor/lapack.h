// SPDX-License-Identifier: Apache-2.0
// The LAPACK routines used here (they come with OpenBLAS). Column-major; the last arguments are the
// lengths of the strings.
#pragma once

#include <cstddef>

extern "C" {
void dgesvd_(const char* job_u, const char* job_v, const int* m, const int* n, double* a,
             const int* lda, double* s, double* u, const int* ldu, double* v, const int* ldv,
             double* work, const int* work_size, int* info, std::size_t, std::size_t);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info, std::size_t);
void dpotrs_(const char* uplo, const int* n, const int* rhs, const double* a, const int* lda,
             double* b, const int* ldb, int* info, std::size_t);
void dtrtri_(const char* uplo, const char* diagonal, const int* n, double* a, const int* lda,
             int* info, std::size_t, std::size_t);
void dstev_(const char* job, const int* n, double* d, double* e, double* z, const int* ldz,
            double* work, int* info, std::size_t);
}
