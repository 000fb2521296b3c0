// Preloads lazy modules that an agent would otherwise load weeks after its start. By then an upgrade may have removed their
// files. At the start, and before a reload replaces anything, the files still exist.
import type { AgentConfig } from '../../core/config/config.js';
import { loadHttp } from '../../platform/net/http-request.js';

/** Drivers that send HTTP requests. */
const httpDrivers: readonly string[] = ['http', 'supervisord'];

/**
 * Loads the lazy modules that this configuration needs. It skips those that the configuration does not need, because the
 * HTTP module takes eight megabytes of memory.
 */
export async function loadLazyModules({ repository, workers }: AgentConfig): Promise<void> {
  const usesHttpRepository = repository.some(({ url }) => !url.startsWith('file:'));
  const usesHttpDriver = workers.some(
    ({ reset }) => reset !== undefined && httpDrivers.includes(reset.driver),
  );
  if (usesHttpRepository || usesHttpDriver) await loadHttp();
}
