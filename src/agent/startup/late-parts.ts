// Parts of the program that an agent loads when it first needs them, weeks after its start: an upgrade has taken their files by
// then. They are loaded while their files are there for sure, at the start, or before a reload takes anything over.
import type { AgentConfig } from '../../core/config/config.js';
import { loadHttp } from '../../platform/net/http-ask.js';

/** Drivers that ask over HTTP. */
const overHttp: readonly string[] = ['http', 'supervisord'];

/** Loads what this configuration will need, and nothing that it will not: of HTTP there are eight megabytes. */
export async function loadLateParts({ repository, workers }: AgentConfig): Promise<void> {
  const isAsked = repository.some(({ url }) => !url.startsWith('file:'));
  const isNotified = workers.some(({ reset }) => reset !== undefined && overHttp.includes(reset.driver));
  if (isAsked || isNotified) await loadHttp();
}
