// `writ config show` for people: one line for each value, with its source. Pure.
import type { AgentConfig, BundleConfig, MirrorConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { ProxyUse } from '../../core/proxy-rules.js';
import { roughly, table } from './show-text.js';

export interface ShownConfig {
  readonly config: AgentConfig;
  /** Pointers of the keys that the file sets, as `/poll/every`. */
  readonly given: readonly string[];
  /** The proxies of this command; they come from the environment when the key `proxy` is absent. */
  readonly proxies: readonly ProxyUse[];
}

/**
 * @param file the path of the configuration file
 * @returns aligned lines `key value source`; the source is `file` or `default`
 */
export function showConfig(file: string, { config, given, proxies }: ShownConfig): string[] {
  const row = (key: string, value: string): string[] => {
    const pointer = `/${key.replaceAll('.', '/')}`;
    const set = given.some((one) => one === pointer || one.startsWith(`${pointer}/`));
    return [key, value, set ? 'file' : 'default'];
  };
  const { poll, limits, freshness, scrub } = config;
  const rows = [
    ...config.repository.map((mirror) => ['repository', mirrorText(mirror), 'file']),
    row('root', config.root),
    row('state', config.state),
    row('policy', config.policy),
    row('run', config.run),
    row('socket', config.socket),
    row('host.id', config.host.id),
    ...Object.entries(config.host.labels).map(([name, value]) => row(`host.labels.${name}`, value)),
    poll.kind === 'every'
      ? row('poll.every', roughly(poll.everyMs))
      : row('poll.cron', `${poll.expression}${poll.timeZone === undefined ? '' : ` (${poll.timeZone})`}`),
    row('keep.generations', String(config.keep.generations)),
    row('keep.grace', roughly(config.keep.graceMs)),
    row('refusals.retry', roughly(config.refusals.retryMs)),
    row('scrub.every', scrub.everyMs === undefined ? 'off' : roughly(scrub.everyMs)),
    row('scrub.repair', scrub.repair),
    row('scrub.rate', `${scrub.bytesPerSecond} B/s`),
    row('staleAfter', roughly(freshness.staleAfterMs)),
    row('maxStale', optionalText(freshness.maxStaleMs)),
    row('release.staleAfter', roughly(freshness.release.staleAfterMs)),
    row('release.maxStale', optionalText(freshness.release.maxStaleMs)),
    ...(freshness.onStale === undefined ? [] : [row('onStale', freshness.onStale.run.join(' '))]),
    ...(freshness.onFresh === undefined ? [] : [row('onFresh', freshness.onFresh.run.join(' '))]),
    row('untrusted', config.untrusted),
    ...(config.metrics === undefined ? [] : [row(...metricsText(config.metrics))]),
    ...(config.events === undefined ? [] : [row('events.file', config.events.file)]),
    ...proxyRows(config.proxy, proxies),
    ...(config.read === undefined
      ? []
      : [row('read.group', String(config.read.group)), row('read.detail', config.read.detail)]),
    row('limits.archive', `${limits.maxArchiveBytes} B`),
    row('limits.entries', String(limits.maxEntries)),
    row('limits.file', `${limits.maxFileBytes} B`),
    row('limits.tree', `${limits.maxTreeBytes} B`),
    row('limits.depth', String(limits.maxDepth)),
    row('limits.ratio', String(limits.maxRatio)),
    ...transportRows(config, row),
    ...config.bundles.map((bundle) => [`bundle ${bundle.name}`, bundleText(bundle), 'file']),
    ...config.together.map((set) => ['together', set.join(', '), 'file']),
    ...config.workers.map((worker) => [`workers ${worker.name}`, workerText(worker), 'file']),
  ];
  return [`VALID ${file}`, ...table(['key', 'value', 'from'], rows)];
}

function proxyRows(proxy: AgentConfig['proxy'], uses: readonly ProxyUse[]): string[][] {
  if (proxy === 'none') return [['proxy', 'none', 'file']];
  const files =
    proxy === undefined
      ? []
      : [
          ...(proxy.credentialsFile === undefined ? [] : [`credentials ${proxy.credentialsFile}`]),
          ...(proxy.ca === undefined ? [] : [`authority ${proxy.ca}`]),
          ...(proxy.noProxy === undefined ? [] : [`not for ${proxy.noProxy.join(', ')}`]),
        ];
  if (proxy !== undefined) return [['proxy', [proxy.url, ...files].join(', '), 'file']];
  return uses.map(({ url, proxy: used, from, why }) => [
    'proxy',
    `${used ?? why ?? 'none'} for ${url}`,
    from,
  ]);
}

function optionalText(ms: number | undefined): string {
  return ms === undefined ? 'none' : roughly(ms);
}

function metricsText(metrics: NonNullable<AgentConfig['metrics']>): [key: string, value: string] {
  if (metrics.kind === 'unix') return ['metrics.socket', metrics.path];
  const host = metrics.host.includes(':') ? `[${metrics.host}]` : metrics.host;
  return ['metrics.listen', `${host}:${metrics.port}`];
}

function transportRows(
  { metadataLimits: metadata, transport }: AgentConfig,
  row: (key: string, value: string) => string[],
): string[][] {
  return [
    row('limits.metadata.root', `${metadata.maxRootBytes} B`),
    row('limits.metadata.timestamp', `${metadata.maxTimestampBytes} B`),
    row('limits.metadata.snapshot', `${metadata.maxSnapshotBytes} B`),
    row('limits.metadata.targets', `${metadata.maxTargetsBytes} B`),
    row('limits.metadata.rotations', String(metadata.maxRootRotations)),
    row('limits.timeouts.connect', roughly(transport.connectTimeoutMs)),
    row('limits.timeouts.idle', roughly(transport.idleTimeoutMs)),
    row('limits.timeouts.metadata', roughly(transport.metadataTimeoutMs)),
    row('limits.timeouts.refresh', roughly(transport.refreshTimeoutMs)),
    row('limits.timeouts.archive', roughly(transport.archiveTimeoutMs)),
  ];
}

function mirrorText({ url, ca, redirects }: MirrorConfig): string {
  const authority = ca === undefined ? '' : `, authority ${ca}`;
  const hosts = redirects.length === 0 ? '' : `, may redirect to ${redirects.join(', ')}`;
  return `${url}${authority}${hosts}`;
}

function bundleText({ channel, checks, mode, group }: BundleConfig): string {
  const names = checks.map((check) => check.name).join(', ');
  const owner = group === undefined ? '' : `, group ${group}`;
  return `${channel}, mode 0${mode.toString(8)}${owner}, checks: ${names === '' ? 'none' : names}`;
}

function workerText({ uses, load, reset, probe, confirm }: WorkerGroupConfig): string {
  const how = [
    ...(load === undefined ? [] : [`load ${load.run[0]}`]),
    ...(reset === undefined ? [] : [`reset by ${reset.driver}, at least ${reset.min}`]),
    ...(probe === undefined ? [] : [`probe ${probe.run[0]}`]),
  ];
  return `uses ${uses.join(', ')}; ${how.join('; ')}; confirm ${confirm}`;
}
