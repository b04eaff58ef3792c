# The commands of this project. `make demo` and `make test` are all a newcomer
# needs: both install what is missing and say so.

.PHONY: build demo test test-go test-erl test-eleveldb interop bench bench-node bench-rows bench-eleveldb bench-couch fuzz fmt clean

# The product is one static binary. Only the race detector needs a C compiler.
export CGO_ENABLED = 0

build: bin/scanode

.PHONY: bin/scanode
bin/scanode:
	go build -trimpath -o bin/scanode ./cmd/scanode

demo:
	scripts/setup demo
	$(MAKE) --no-print-directory build
	scripts/demo

# The Erlang/OTP releases that tests meet; scripts/otp installs those that this
# machine does not have. `make test OTP=` is content with the machine's own.
OTP ?= 25 27

test:
	scripts/setup test
	@[ -z "$(OTP)" ] || scripts/otp $(OTP)
	SCANODE_OTP="$(OTP)" $(MAKE) --no-print-directory build test-go test-erl

# Every release that is supported: terms in their full number, connections made by
# us, and the matrix of releases and cases with a hundred reconnects each way, a line
# for each.
interop: OTP = 23 25 27 29
interop: OUTGOING = Connect|CrossingCalls|WrongCookie|NotAllowed|WithoutEPMD|Reasons|BEAMKilled|CloseTellsWatchers
interop:
	scripts/setup test
	scripts/otp $(OTP)
	$(MAKE) --no-print-directory build
	SCANODE_INTEROP=full SCANODE_OTP="$(OTP)" go test -count=1 -timeout 20m -run '^TestBeam' -v ./etf
	@for release in $(OTP); do \
		echo "node: OTP $$release"; \
		scripts/otp with $$release go test -count=1 -run '^Test($(OUTGOING))$$' ./node || exit 1; \
	done
	SCANODE_INTEROP=full SCANODE_OTP="$(OTP)" SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode rebar3 ct --readable=false --suite erl_test/interop_SUITE

test-go:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	go vet ./...
	CGO_ENABLED=1 go test -race -timeout 20m ./...
	go test -run '^TestOwnBytes$$' ./storage/couch/btree
	go test -run '^TestAllocations$$' ./storage/lsm
	cd bench && go vet -mod=mod ./couch && go test -mod=mod ./couch

# Compiles with warnings as errors, then xref, dialyzer, and the suites, which
# start the real binary.
test-erl: build
	rebar3 do compile, xref, dialyzer
	SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode rebar3 ct
	$(MAKE) --no-print-directory test-eleveldb

# The same for the application that takes eleveldb's place. It has scanode in the
# code path, as it has where both are dependencies of a project.
test-eleveldb: build
	rebar3 compile
	cd compat/eleveldb && ERL_LIBS=$(CURDIR)/_build/default/lib rebar3 do compile, xref, dialyzer
	cd compat/eleveldb && ERL_LIBS=$(CURDIR)/_build/default/lib SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode rebar3 ct

bench:
	go test -run '^$$' -bench . -benchmem ./...

# The transports beside others in the same run: BEAM to BEAM, a C node, ergo. Prints
# tables; REPETITIONS and SCAN_MIB say how much.
bench-node:
	scripts/setup test
	$(MAKE) --no-print-directory build
	SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode bench/run

# Queries over rows, beside an Erlang client in the same run. Writes
# bench/results/rows.md and rows.svg; REPETITIONS and ROWS say how much.
bench-rows:
	scripts/setup test
	$(MAKE) --no-print-directory build
	SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode bench/rows/run

# A module with eleveldb's functions beside what was recorded of the original. CODE_PATH
# names the directories of its beam files if it is not the one here; REPETITIONS and
# ROWS say how much.
MODULE ?= eleveldb
bench-eleveldb: build
	rebar3 compile
	cd compat/eleveldb && ERL_LIBS=$(CURDIR)/_build/default/lib rebar3 compile
	@SCANODE_EXECUTABLE=$(CURDIR)/bin/scanode bench/eleveldb/run $(MODULE) $(CODE_PATH)

# What the append-only B+tree writes under each policy, and how fast it is, beside what was
# recorded of couch_btree. Writes bench/results/couch.md; REPETITIONS says how much. The
# large values need 2 GB of disk for a while.
bench-couch:
	@bench/couch/run

# Every fuzz target for T each, 10 seconds unless told otherwise: make fuzz T=60s
# Left to itself, go spends up to a minute on making one input shorter.
T ?= 10s
fuzz:
	@for pkg in $$(go list ./...); do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(T) -fuzzminimizetime 20x $$pkg || exit 1; \
		done; \
	done

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin _build compat/eleveldb/_build
