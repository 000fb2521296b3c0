// Runs writ against an agent with scripted answers, and records the requests.
import { writeFileSync } from 'node:fs';
import type { SocketMessage } from '../../../src/core/protocol/socket-protocol.js';
import { tempDir } from '../disk/temp-dir.js';
import { type FakeAgent, fakeAgent } from './fake-agent.js';
import { runWrit, type WritRun } from './run-writ.js';

export interface Session {
  readonly run: WritRun;
  readonly requests: FakeAgent['requests'];
  readonly config: string;
}

/**
 * Runs the command against a fake agent, and removes both afterwards.
 * @param answer the lines that the agent sends for a request
 * @returns the end of the command and the requests that the agent received
 */
export async function withAgent(
  args: readonly string[],
  answer: (request: SocketMessage) => readonly (object | string)[],
  more: { readonly version?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Session> {
  using dir = tempDir();
  const config = dir.join('agent.yaml');
  writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\nrun: ${dir.path}\n`);
  await using agent = await fakeAgent({
    path: dir.join('agent.sock'),
    answer,
    ...(more.version === undefined ? {} : { version: more.version }),
  });
  const env = { SUDO_USER: 'anna', WRIT_CONFIG: config, ...more.env };
  return { run: await runWrit(args, { env }), requests: agent.requests, config };
}
