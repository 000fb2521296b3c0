// Metrics of a fleet server about the repositories that it follows. Neither a URL nor a role is a label, because both have no fixed set.
import { standings } from '../../core/fleet/signed-releases.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { ShowSummary } from './summary-metrics.js';

/** Without repositories the gauges have no value. */
export function repositoryGauges(metrics: Metrics): ShowSummary {
  const repositories = metrics.gauge({
    name: 'writ_fleet_repositories',
    help: 'Repositories that the server reads, by whether it could the last time.',
    labels: ['state'],
  });
  const checked = metrics.gauge({
    name: 'writ_fleet_repository_oldest_read_timestamp_seconds',
    help: 'When the repository that was not read for longest was read last; 0: never.',
    labels: [],
  });
  const ends = metrics.gauge({
    name: 'writ_fleet_repository_role_expires_timestamp_seconds',
    help: 'When the first role of any repository expires.',
    labels: [],
  });
  const byStanding = metrics.gauge({
    name: 'writ_fleet_standings',
    help: 'Places where a release is active, by its relation to what was signed.',
    labels: ['standing'],
  });
  return (summary) => {
    for (const gauge of [repositories, checked, ends, byStanding]) gauge.clear();
    if (summary?.repositories === undefined) return;
    const { releases, repositories: all } = summary;
    const unread = all.filter(({ failing }) => failing !== undefined).length;
    repositories.set({ state: 'read' }, all.length - unread);
    repositories.set({ state: 'unread' }, unread);
    checked.set({}, Math.min(...all.map(({ checkedAtMs = 0 }) => checkedAtMs)) / 1000);
    const firstMs = Math.min(...all.flatMap(({ roles }) => roles.map((one) => one.expiresAtMs)));
    if (Number.isFinite(firstMs)) ends.set({}, firstMs / 1000);
    for (const standing of standings) {
      const here = releases.filter((one) => one.standing === standing);
      byStanding.set(
        { standing },
        here.reduce((sum, one) => sum + one.confirmed + one.notified + one.unconfirmed, 0),
      );
    }
  };
}
