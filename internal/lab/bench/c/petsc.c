/* Solves the five-point Laplacian on n x n points with PETSc and prints, for each method
 * and preconditioner, what it has cost:
 *
 *     method precond unknowns iterations residual cpu-seconds
 *
 * cpu-seconds are those of all processes in KSPSolve. Arguments: n, iterations. */
#include <petscksp.h>
#include <sys/resource.h>

static double cpu(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
	PetscInitialize(&argc, &argv, NULL, NULL);
	const PetscInt n = atoi(argv[1]), iterations = atoi(argv[2]);
	int rank;
	MPI_Comm_rank(PETSC_COMM_WORLD, &rank);

	Mat A;
	MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, NULL, 2, NULL, &A);
	PetscInt lo, hi;
	MatGetOwnershipRange(A, &lo, &hi);
	for (PetscInt i = lo; i < hi; i++) {
		MatSetValue(A, i, i, 4, INSERT_VALUES);
		if (i % n > 0) MatSetValue(A, i, i - 1, -1, INSERT_VALUES);
		if (i % n < n - 1) MatSetValue(A, i, i + 1, -1, INSERT_VALUES);
		if (i >= n) MatSetValue(A, i, i - n, -1, INSERT_VALUES);
		if (i + n < n * n) MatSetValue(A, i, i + n, -1, INSERT_VALUES);
	}
	MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY);
	MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY);
	Vec x, b;
	MatCreateVecs(A, &x, &b);
	for (PetscInt i = lo; i < hi; i++) VecSetValue(b, i, 1 + i % 7, INSERT_VALUES);
	VecAssemblyBegin(b);
	VecAssemblyEnd(b);
	PetscReal normB;
	VecNorm(b, NORM_2, &normB);

	const char *methods[] = {KSPCG, KSPBCGS, KSPGMRES};
	const char *names[] = {"cg", "bicgstab", "gmres"};
	for (int m = 0; m < 3; m++)
		for (int p = 0; p < 2; p++) {
			KSP ksp;
			PC pc;
			KSPCreate(PETSC_COMM_WORLD, &ksp);
			KSPSetOperators(ksp, A, A);
			KSPSetType(ksp, methods[m]);
			KSPGetPC(ksp, &pc);
			PCSetType(pc, p ? PCBJACOBI : PCNONE);
			if (m > 0) KSPSetPCSide(ksp, PC_RIGHT);
			KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED);
			KSPSetTolerances(ksp, 1e-14, 1e-300, 1e300, iterations);
			KSPSetUp(ksp);
			KSPSetUpOnBlocks(ksp);
			VecSet(x, 0);
			MPI_Barrier(PETSC_COMM_WORLD);
			double mine = cpu(), all;
			KSPSolve(ksp, b, x);
			mine = cpu() - mine;
			MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD);
			PetscInt done;
			PetscReal norm;
			KSPGetIterationNumber(ksp, &done);
			KSPGetResidualNorm(ksp, &norm);
			if (rank == 0) printf("%s %s %d %d %.6e %.6f\n", names[m], p ? "ilu" : "none", (int)(n * n), (int)done, norm / normB, all);
			KSPDestroy(&ksp);
		}
	PetscFinalize();
	return 0;
}
