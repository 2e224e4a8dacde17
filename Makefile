# What people and CI run. `make` alone tests.

LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
TAGS :=

.PHONY: test check race vet lint lint-mpi test-processes test-mpi test-ulfm test-hosts test-slurm test-sid bench bench-mpi bench-petsc bench-detector bench-hosts fuzz soak kills nightly matrices portable figures ci

test:
	go test -tags '$(TAGS)' ./...

# What a change passes before it is proposed. It needs Go alone.
check:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt would change: $$unformatted"; exit 1; }
	go mod tidy -diff
	go -C internal/lab mod tidy -diff
	go vet ./...
	go vet -tags ulfm ./...
	go -C internal/lab vet ./...
	go test -short ./...
	go -C internal/lab test -short ./...
	go test -short -tags ulfm ./mpicx/... ./examples/...

# The solver's numerics take twelve times as long under the race detector, and are no race.
race:
	go test -race -tags '$(TAGS)' $$(go list -tags '$(TAGS)' ./... | grep -v '/examples/krylov$$')
	go test -race -short -tags '$(TAGS)' ./examples/krylov
	go -C internal/lab test -race -tags '$(TAGS)' ./...

vet:
	go vet -tags '$(TAGS)' ./...
	go -C internal/lab vet -tags '$(TAGS)' ./...

# The linter is built from source, once a machine. With tags, it reads the packages that have files for them.
lint:
	$(LINT) run
	$(LINT) run --build-tags ulfm ./mpicx
	cd internal/lab && $(LINT) run

# What needs an MPI: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev pkg-config
lint-mpi:
	$(LINT) run --build-tags mpi ./mpicx ./internal/transport/mpi
	cd internal/lab && $(LINT) run --build-tags mpi ./guest

# What makes sense with processes, without MPI.
test-processes:
	./internal/lab/scripts/test-processes

# What makes sense under mpirun, with Open MPI and MPICH.
test-mpi:
	./internal/lab/scripts/test-mpi

# The same with Open MPI 5 and processes that are killed, in a Debian 13 root. Needs
# root, and mmdebstrap.
test-ulfm:
	./internal/lab/scripts/trixie ./internal/lab/scripts/test-mpi

# Two hosts, as network namespaces, of which one is lost. Needs the same.
test-hosts:
	./internal/lab/scripts/trixie ./internal/lab/scripts/two-hosts

# The batch files of docs/slurm.md, under the Slurm of Debian 12 and 13. Needs the same.
test-slurm:
	./internal/lab/scripts/test-slurm bookworm
	./internal/lab/scripts/test-slurm trixie

# The newest MPIs that Debian has. Needs the same.
test-sid:
	MPICX_WITH=mpich,libmpich-dev ./internal/lab/scripts/debian sid ./internal/lab/scripts/test-mpi

# One table: each row measures ours and what it is compared with side by side.
bench:
	go -C internal/lab run ./bench

# Against C, under mpirun: with each MPI that is here, and in the Debian 13 root.
bench-mpi:
	./internal/lab/scripts/bench-mpi
	./internal/lab/scripts/trixie ./internal/lab/scripts/bench-mpi

# The methods of mpicx/krylov against PETSc: apt-get install petsc-dev
bench-petsc:
	./internal/lab/scripts/bench-petsc

# What examples/krylov's detector costs.
bench-detector:
	go test -run XXX -bench Detector -benchtime 30x ./examples/krylov/detect

# Between two hosts, as network namespaces: against C, and what heartbeats cost.
bench-hosts:
	./internal/lab/scripts/trixie ./internal/lab/scripts/two-hosts bench

# Figures of the README and of docs: a quarter of an hour of a core, for the repetitions in virtual time.
figures:
	go -C internal/lab run ./bench -rows 'Figure|Table' -repetitions 1000 -plot ../../docs
	go run ./examples/krylov -compare -json | go -C internal/lab run ./draw ../../docs/residual.png
	./internal/lab/scripts/timeline docs/timeline.svg

# Each fuzz target for a while: make fuzz FUZZTIME=10m
FUZZTIME := 30s
fuzz:
	./internal/lab/scripts/fuzz $(FUZZTIME)

# Random schedules of both backends in virtual time, and random programs over the public
# face: make soak FOR=8h
FOR := 10m
soak:
	go -C internal/lab run ./soak -for $(FOR)
	go -C internal/lab run ./checker -for $(FOR)

# The checks that are too long for CI: an hour and more.
nightly:
	$(MAKE) race portable test-processes test-mpi # .ci/run does parts of these
	$(MAKE) race TAGS=ulfm
	$(MAKE) race TAGS='mpi ulfm'
	$(MAKE) test-ulfm # in full: MPI's own revoke and agree meet ends at random there
	MPICX_NIGHTLY=1 go test -timeout 2h -run AllOrNone ./ulfmbackend
	for seed in $$(seq 2 51); do MPICX_SEED=$$seed go test -tags ulfm -timeout 1h -run 'Random|Group|Again|LoadAfter' ./mpicx/recovery ./mpicx/checkpoint || exit 1; done
	go -C internal/lab run ./soak -schedules 1000000
	go -C internal/lab run ./checker -programs 1000000
	$(MAKE) fuzz FUZZTIME=500000x # not a time, at whose end Go 1.26 may fail for nothing: golang/go#75804
	go -C internal/lab run ./bench -quick
	./internal/lab/scripts/trixie ./internal/lab/scripts/bench-mpi -quick
	$(MAKE) kills FOR=1h
	$(MAKE) test-slurm

# Processes of an MPI job that end in every way, for so long; needs what test-ulfm does.
kills:
	./internal/lab/scripts/trixie ./internal/lab/scripts/kills -for $(FOR)

# Writes testdata/matrices anew.
matrices:
	go -C internal/lab run ./genmatrices

# Pure Go builds and vets wherever Go runs.
portable:
	./internal/lab/scripts/portable

# All of it, on the maintainers' machine: MPIs, Debian roots, hosts that are lost.
ci:
	.ci/run
