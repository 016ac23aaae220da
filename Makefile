# The commands of the project. `make demo` needs Rust only; `make test` fetches
# what it lacks (tests/parts/) and runs everything that .ci/run runs.

DEMO_ADDRESS ?= 127.0.0.1:10404
# Warnings are errors here, not for whoever builds a release with a newer Rust.
CLIPPY = cargo clippy --locked --all-features --all-targets -- -D warnings

.PHONY: help demo test check bench collection docs alerts dashboards chart pictures waterfall

help: ## What can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## Serve the recorded runs of examples/ and say where to look
	cargo build --locked --quiet
	@echo
	@echo "Recorded runs of real Spark applications, healthy and ill. Look at"
	@echo "  http://$(DEMO_ADDRESS)/         the applications and what is wrong with each"
	@echo "  http://$(DEMO_ADDRESS)/metrics  the same for Prometheus (spark_finding)"
	@echo "and, in another terminal, one of them as a person would read it:"
	@echo "  cargo run --quiet -- diagnose examples/logs/hot_key/4.3.0"
	@echo "Stop with Ctrl-C."
	@echo
	@cargo run --locked --quiet -- --cluster.name demo --log.level warn --web.listen-address $(DEMO_ADDRESS) \
	  --retention 1d $(addprefix --event-log.dir ,$(sort $(wildcard examples/logs/*/* examples/history/*/*)))

check: ## Format, lints, licences: no test, no network but crates.io
	cargo fmt --all --check
	$(CLIPPY)
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --all-features --no-deps --lib --document-private-items
	$$(tests/parts/cargo-deny) check --hide-inclusion-graph licenses bans sources

test: check ## Everything: real Spark, real Prometheus, every test
	tests/parts/all
	cargo test --locked --all-features --no-run
	tests/run

bench: ## The figures of benches/README.md, as ratios in one run
	EVENT_LOGS=$$(benches/make_many_tasks) \
	  MORE_EVENT_LOGS="$$(benches/make_many_tasks 1000000) $$(benches/make_many_tasks 1000000-one-stage)" \
	  cargo bench --locked

collection: ## Record the runs of examples/ again, with real Spark
	tests/spark/record

docs: ## Write the generated documentation again
	UPDATE_DOCS=1 cargo test --locked --all-features --quiet --test docs

alerts: ## Write the files of rules again, from alerts/mixin.libsonnet
	$$(tests/parts/python-tools)/bin/python -B alerts/compile
	UPDATE_DOCS=1 cargo test --locked --quiet --test alerts the_tables_of_the_page
	@$(MAKE) --no-print-directory chart

dashboards: ## Write dashboards/*.json again, from dashboards/source
	$$(tests/parts/grafana-sdk)/bin/python -B dashboards/source/main.py
	@$(MAKE) --no-print-directory chart

chart: ## Write what the Helm chart has of other files: alerts, dashboards, its values' schema and table
	$$(tests/parts/python-tools)/bin/python -B helm/compile

pictures: ## Draw docs/dashboards/ again: recorded runs happen again for eight minutes
	cargo build --locked --quiet
	dashboards/draw/pictures.py

waterfall: ## Draw docs/opentelemetry/ again: a recorded run through a real Collector
	cargo build --locked --quiet
	docs/opentelemetry/waterfall.py docs/opentelemetry/skewed-run.svg
