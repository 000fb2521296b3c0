// A worker without a fault: serves the plan that it read at its start or at HUP. Usage: plan.js PLAN SOCKET
import { readFileSync } from 'node:fs';
import { serveOn } from './serve.js';

const [plan = '', socket = ''] = process.argv.slice(2);
const readPlan = (): string => readFileSync(plan, 'utf8').trim();
let uses = readPlan();
serveOn(socket, () => uses);
process.on('SIGHUP', () => {
  uses = readPlan();
});
