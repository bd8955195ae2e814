"""What authors import (spiders, routes, pages), and what turns a page into a harvest."""
