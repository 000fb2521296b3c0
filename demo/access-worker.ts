// A whole native worker: answers "may this user do that?" from the bundle `access` of whatever generation is
// active, and refuses a policy it cannot use. Usage: access-worker.js SOCKET [PORT] [NAME]
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connectPolicy } from 'writ/sdk';
import { parse } from 'yaml';

type Grants = Readonly<Record<string, readonly string[]>>;

/** @throws Error for a policy in which a user has a role that does not exist: no schema can see that */
async function loadPermissions(bundle: string): Promise<Map<string, Set<string>>> {
  const policy = parse(await readFile(join(bundle, 'policy.yaml'), 'utf8'));
  const roles = new Map(Object.entries(policy.roles as Grants));
  return new Map(
    Object.entries(policy.users as Grants).map(([user, names]) => {
      const unknown = names.find((name) => !roles.has(name));
      if (unknown !== undefined) throw new Error(`policy.yaml: user ${user} has the unknown role ${unknown}`);
      return [user, new Set(names.flatMap((name) => roles.get(name) ?? []))];
    }),
  );
}

const [socket = '/run/writ/workers/access.sock', port = '0', name = 'access-worker'] = process.argv.slice(2);
let permissions = new Map<string, Set<string>>();
const policy = connectPolicy({
  socket,
  name,
  onGeneration: async (generation) => {
    // Assigned only when the whole policy was read: a request never sees half of one.
    permissions = await loadPermissions(generation.bundle('access'));
  },
});

const server = createServer((request, response) => {
  const [path, query] = (request.url ?? '').split('?');
  const asked = new URLSearchParams(query);
  const allowed = permissions.get(asked.get('user') ?? '')?.has(asked.get('action') ?? '') ?? false;
  response.writeHead(path === '/allowed' ? 200 : 404, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify({ allowed, generation: policy.current?.generation ?? null, name })}\n`);
});
server.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write(`${name} listens on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void policy.close();
});
