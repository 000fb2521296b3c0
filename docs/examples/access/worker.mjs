// A native worker in Node: answers "may this user do that?" from the bundle `access`. Usage: worker.mjs SOCKET PORT
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { connectPolicy } from 'writ/sdk';
import { parse } from 'yaml';

/** Throws for a user with a role that does not exist, which no schema can see: that is the worker's no. */
async function readPermissions(bundle) {
  const { roles, users } = parse(await readFile(join(bundle, 'policy.yaml'), 'utf8'));
  const actionsOf = (user, role) => {
    if (!Object.hasOwn(roles, role))
      throw new Error(`policy.yaml: user ${user} has the unknown role ${role}`);
    return roles[role];
  };
  return new Map(
    Object.entries(users).map(([user, names]) => [
      user,
      new Set(names.flatMap((role) => actionsOf(user, role))),
    ]),
  );
}

const [socket, port] = process.argv.slice(2);
let permissions = new Map();
connectPolicy({
  socket,
  name: 'access',
  // Assigned when the whole policy was read: no request sees half of one, and only then it is confirmed.
  onGeneration: async (generation) => {
    permissions = await readPermissions(generation.bundle('access'));
  },
});
createServer((request, response) => {
  const { searchParams } = new URL(request.url, 'http://worker');
  const allowed = permissions.get(searchParams.get('user'))?.has(searchParams.get('action')) ?? false;
  response.end(`${allowed ? 'yes' : 'no'}\n`);
}).listen(Number(port), '127.0.0.1');
