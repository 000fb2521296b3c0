// Metrics with prom-client, in a separate registry. The only file that imports the library, so that it can be replaced. The library is
// loaded with the first registry.
import type { Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram } from 'prom-client';

export type MetricLabels = Readonly<Record<string, string | number>>;

export interface Counter {
  add(labels: MetricLabels, by?: number): void;
}

export interface Gauge {
  set(labels: MetricLabels, value: number): void;
  /** Removes every value, so that an outdated value is not exported. */
  clear(): void;
}

export interface Histogram {
  observe(value: number): void;
}

export interface MetricOptions {
  /** In the form of Prometheus, with a unit, as `writ_server_sent_bytes_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of labels; their values must come from a fixed, small set. */
  readonly labels: readonly string[];
}

export interface Metrics {
  counter(options: MetricOptions): Counter;
  gauge(options: MetricOptions): Gauge;
  /** @param options `bounds` of the buckets in ascending order, in the unit of the name */
  histogram(options: Omit<MetricOptions, 'labels'> & { readonly bounds: readonly number[] }): Histogram;
  /** @returns all metrics in the text format of Prometheus */
  text(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  /** `include`: also CPU, memory, event loop delay and descriptors of this process. */
  readonly process: 'include' | 'omit';
}

/** Loads the library and creates an empty registry. A name that is registered twice makes the library throw. */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const registry = new Registry();
  if (options.process === 'include') collectDefaultMetrics({ register: registry });
  return {
    counter: ({ name, help, labels }) => {
      const counter: PromCounter = new Counter({ name, help, labelNames: labels, registers: [registry] });
      return { add: (values, by = 1) => counter.inc({ ...values }, by) };
    },
    gauge: ({ name, help, labels }) => {
      const gauge: PromGauge = new Gauge({ name, help, labelNames: labels, registers: [registry] });
      const clear = (): void => {
        gauge.reset();
        // Without labels, a reset would export the value 0.
        if (labels.length === 0) gauge.remove();
      };
      return { set: (values, value) => gauge.set({ ...values }, value), clear };
    },
    histogram: ({ name, help, bounds }) => {
      const options = { name, help, buckets: [...bounds], registers: [registry] };
      const histogram: PromHistogram = new Histogram(options);
      return { observe: (value) => histogram.observe(value) };
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
