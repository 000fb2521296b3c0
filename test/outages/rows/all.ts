// All rows, in the order of the table.
import type { Outage } from '../stage/outage.js';
import { azureFrontDoor } from './azure-front-door.js';
import { cloudflare2019 } from './cloudflare-2019.js';
import { cloudflare2025 } from './cloudflare-2025.js';
import { crowdstrike } from './crowdstrike.js';
import { dynamodb } from './dynamodb.js';
import { googleCloud } from './google-cloud.js';
import { metaFirewall, metaRoute } from './meta.js';

export const outages: readonly Outage[] = [
  ...[crowdstrike, cloudflare2025, googleCloud],
  ...[azureFrontDoor, cloudflare2019, dynamodb],
  ...[metaFirewall, metaRoute],
];
