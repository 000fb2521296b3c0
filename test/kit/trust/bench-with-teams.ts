// A trust bench with targets that delegate to two teams, `dns` and `web`, each with a bundle of its name.
import type { RepositorySimulator } from '../repository/repository-simulator.js';
import { type TrustBench, trustBench } from './trust-bench.js';

/** @example using bench = benchWithTeams(); await bench.refresh(); await bench.find('dns'); */
export function benchWithTeams(): TrustBench {
  const bench = trustBench();
  for (const team of ['dns', 'web']) {
    bench.repository.delegate('targets', { name: team, paths: [`${team}/*`], terminating: true });
    addTeamRelease(bench.repository, team, team);
  }
  bench.repository.publish();
  return bench;
}

/** Lists a release in the `stable` channel of a bundle. publish() makes it known. */
export function addTeamRelease(repository: RepositorySimulator, bundle: string, listedBy: string): void {
  repository.addRelease({ bundle, channel: 'stable' }, Buffer.from(bundle), { listedBy });
}
