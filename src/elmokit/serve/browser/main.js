// Where an exported page begins.

import { explore } from "../page/explorer.js";
import { backend } from "./backend.js";

explore(backend, document.body);
